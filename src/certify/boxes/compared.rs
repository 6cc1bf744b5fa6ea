//! What the best chip is compared with: that each baseline is the chip it says, within the budget where
//! it is one of the space, trains as its plans say, and stands to the winner as is told. Which chip
//! operators alone or a plan of experts would choose is for `deep` to say.

use crate::compare::STOPPED;
use crate::compare::chips::Beside;
use crate::compare::chips::N_OF_SPACE;
use crate::compare::chips::NETWORK_ENDS;
use crate::compare::chips::NO_PLAN;
use crate::compare::chips::NO_PLAN_WITHIN_CAP;
use crate::compare::chips::NO_SUCH_CHIP;
use crate::compare::chips::OPERATORS_OVER_CAP;
use crate::compare::chips::RealPart;
use crate::compare::chips::SEVERAL_MODELS;
use crate::compare::chips::Takes;
use crate::compare::chips::described;
use crate::compare::chips::expert_space_of;
use crate::compare::chips::given;
use crate::compare::chips::least_given;
use crate::compare::chips::value_of;
use crate::compare::chips::winner_is;
use crate::hardware::chip::knob_place;
use crate::plan::StrategySpace;
use crate::search::chips::ChipBaseline;
use crate::search::chips::ChipEntry;
use crate::search::chips::PartEntry;
use crate::strategy::Standing;

use super::super::claims::FalseClaim;
use super::super::claims::equal;
use super::super::claims::require;
use super::super::feasible;
use super::super::feasible::Fit;
use super::super::proof::known_reason;
use super::super::result;
use super::judged::Judging;

/// Something that the winner is compared with, as it was found to be.
type Other = (Vec<Standing>, Takes);

impl Judging<'_> {
    /// Judges all baselines; how many plans were rebuilt.
    pub(super) fn baselines(&self) -> Result<usize, FalseClaim> {
        let (outcome, question) = (self.outcome, self.question);
        let stopped = known_reason(outcome.comparisons_stopped_by.as_deref())?;
        let told = &outcome.baselines;
        let Some(winner) = outcome.winner.as_ref().filter(|_| !told.is_empty()) else {
            require(told.is_empty(), "baselines.length", told.len(), 0)?;
            require(!stopped, "comparisons_stopped_by", "a reason", "null")?;
            return Ok(0);
        };
        let all = N_OF_SPACE + question.parts.len();
        require(told.len() == all, "baselines.length", told.len(), all)?;
        let point = self.point("winner", winner)?;
        let standings = self.held("winner", winner, &point)?;
        let unmade = || FalseClaim::new("winner.chip", "a chip", "one that cannot be made");
        let takes = Takes::of_chip(&question.setup, &point).ok_or_else(unmade)?;
        let ours = Beside { standings: &standings, takes };
        let mut plans = 0;
        for (at, claimed) in told.iter().enumerate() {
            let path = format!("baselines[{at}]");
            let (name, description) = described(at, &question.setup, &question.parts);
            equal(&format!("{path}.name"), &claimed.name, &name)?;
            equal(&format!("{path}.description"), &claimed.description, &description)?;
            let other = match at.checked_sub(N_OF_SPACE) {
                None => self.of_space(&path, at, claimed)?,
                Some(part) => self.on_part(&path, &question.parts[part], claimed)?,
            };
            let one_or_other = claimed.reason.is_some() != other.is_some();
            require(one_or_other, format!("{path}.reason"), "null", "why nothing is told")?;
            self.is_missing(&path, at, claimed, stopped)?;
            let found = other.as_ref().map(|(standings, takes)| {
                winner_is(&self.judge, &ours, &Beside { standings, takes: *takes })
            });
            equal(&format!("{path}.winner_is"), &claimed.winner_is, &found)?;
            plans += usize::from(other.is_some()) * outcome.models.len();
        }
        Ok(plans)
    }

    /// Whether a baseline is rightly missing, as far as that needs no solver.
    fn is_missing(
        &self,
        path: &str,
        at: usize,
        claimed: &ChipBaseline,
        stopped: bool,
    ) -> Result<(), FalseClaim> {
        let Some(reason) = claimed.reason.as_deref() else { return Ok(()) };
        let setup = &self.question.setup;
        let part = at.checked_sub(N_OF_SPACE).map(|at| &self.question.parts[at]);
        let capped = setup.request.power_cap_w.is_some();
        let given_fits = self.fits(&setup.request.space.budget(), &least_given(given(setup)));
        let holds = match (reason, part) {
            (STOPPED, _) => stopped,
            (NO_PLAN, None) => !capped,
            (NO_PLAN, Some(part)) => self.question.of_part(part).is_ok_and(|question| {
                !capped && feasible::all_fit(&question, part.chip.design().hbm) != Fit::Yes
            }),
            // What a cap leaves is for `deep`.
            (NO_PLAN_WITHIN_CAP, _) => capped,
            (NETWORK_ENDS, Some(part)) => {
                part.physics.network.most_devices().is_some_and(|most| setup.request.devices > most)
            }
            (SEVERAL_MODELS, None) => at == 2 && setup.models.len() > 1,
            (NO_SUCH_CHIP, None) => at == 1 && !given_fits,
            (OPERATORS_OVER_CAP, None) => capped && (at == 0 || at == 1 && given_fits),
            _ => false,
        };
        require(holds, format!("{path}.reason"), reason, "another, or none")
    }

    /// A baseline that is a chip of the space.
    fn of_space(
        &self,
        path: &str,
        at: usize,
        claimed: &ChipBaseline,
    ) -> Result<Option<Other>, FalseClaim> {
        let no_part = claimed.part.is_none();
        require(no_part, format!("{path}.part"), "a part", "null: it is a chip of the space")?;
        let Some(entry) = &claimed.entry else { return Ok(None) };
        let path = format!("{path}.entry");
        let setup = &self.question.setup;
        let experts = expert_space_of(setup).filter(|_| at == 2);
        let wrong = || FalseClaim::new(path.clone(), "a chip", SEVERAL_MODELS);
        let space: &StrategySpace = match (at, &experts) {
            (2, experts) => experts.as_ref().ok_or_else(wrong)?,
            _ => &setup.request.strategies,
        };
        let budget = setup.request.space.budget();
        let (point, standings) = self.told_chip(&path, entry, (space, &budget, &self.judge))?;
        if at < 2 {
            // Operators alone have no use for links, and take those that they are given.
            let (least, knobs) = (least_given(given(&self.question.setup)), ["stacks", "links"]);
            for name in knobs.into_iter().skip(usize::from(at == 0)) {
                let knob = knob_place(name).expect("a knob of chips");
                let is = if at == 0 { 0 } else { least[knob] };
                require(point[knob] == is, format!("{path}.chip.knobs.{name}"), point[knob], is)?;
            }
        }
        let unmade =
            || FalseClaim::new(format!("{path}.chip"), "a chip", "one that cannot be made");
        Ok(Some((standings, Takes::of_chip(setup, &point).ok_or_else(unmade)?)))
    }

    /// A baseline that is a part.
    fn on_part(
        &self,
        path: &str,
        part: &RealPart,
        claimed: &ChipBaseline,
    ) -> Result<Option<Other>, FalseClaim> {
        let no_entry: Option<&ChipEntry> = claimed.entry.as_ref();
        require(no_entry.is_none(), format!("{path}.entry"), "a chip", "null: it is a part")?;
        let Some(PartEntry { part: facts, value, results }) = &claimed.part else {
            return Ok(None);
        };
        let path = format!("{path}.part");
        equal(&format!("{path}.part"), facts, &part.facts)?;
        let question = self.question.of_part(part);
        let question =
            question.map_err(|reason| FalseClaim::new(path.clone(), "a plan", reason))?;
        let (said, is) = (results.len(), question.models.len());
        require(said == is, format!("{path}.results.length"), said, is)?;
        let space = &self.question.setup.request.strategies;
        let each = results.iter().enumerate().map(|(model, facts)| {
            let path = format!("{path}.results[{model}]");
            let held = result::check(&path, &question, (model, space), &part.chip, facts)?;
            Ok(held.standing)
        });
        let standings: Vec<Standing> = each.collect::<Result<_, FalseClaim>>()?;
        equal(&format!("{path}.value"), value, &value_of(&self.judge, &standings, &part.takes))?;
        Ok(Some((standings, part.takes)))
    }
}
