//! Plans of models from 8 to 16,384 devices: none leaves more than a node idle, none has a batch that does
//! not divide, and what does not fit is short of memory and of nothing else.

use phaze::ask::plan::Context;
use phaze::ask::plan::PlanAnswer;
use phaze::ask::plan::PlanRequest;
use phaze::ask::plan::advise;
use phaze::ask::solved::best;
use phaze::input::source::no_files;
use phaze::plan::Plan;

/// Fails unless a plan of so many devices uses all but a node and divides its batch.
fn uses_all(plan: &Plan, devices: u64, name: &str) {
    let training = plan.training.as_ref().unwrap();
    let strategy = &training.strategy;
    assert!(devices - plan.answer.devices <= 8, "{name} on {devices}: {}", plan.answer.devices);
    assert_eq!(plan.answer.devices, plan.job.devices, "{name} on {devices}");
    let each = strategy.micro_batch * strategy.data_parallel;
    assert_eq!(training.global_batch % each, 0, "{name} on {devices}: {strategy}");
}

#[test]
fn models_of_every_size_use_all_devices() {
    let context = Context::new(&no_files);
    let all: &[u64] = &[8, 16, 64, 256, 1024, 4096, 16384];
    for (model, fewest, numbers) in [
        ("llama3-8b", 8, all),
        ("llama3-70b", 64, all),
        ("llama3-405b", 256, all),
        ("mixtral-8x7b", 64, all),
        ("deepseek-v3", 256, &[8, 256, 2048, 16384]),
    ] {
        for &devices in numbers {
            let request = PlanRequest::new(model, "h100-sxm", devices);
            let (ready, _) = request.ready(&no_files).unwrap();
            match best(&ready, &context.table).unwrap() {
                Some((_, plan)) => uses_all(&plan, devices, model),
                None => assert!(devices < fewest, "{model} on {devices}: nothing fits"),
            }
        }
    }
}

#[test]
fn odd_numbers_of_devices_leave_a_node_over_or_get_a_batch_that_they_divide() {
    let context = Context::new(&no_files);
    for devices in [24, 40, 100, 264, 1000] {
        let request = PlanRequest::new("llama3-8b", "h100-sxm", devices);
        let PlanAnswer::Found(advice) = advise(&request, &context).unwrap() else {
            panic!("nothing fits on {devices}")
        };
        uses_all(&advice.plan, devices, "llama3-8b");
        let training = advice.plan.training.as_ref().unwrap();
        let apart = training.global_batch.abs_diff(488);
        assert!(apart <= 62, "{devices}: a batch of {}", training.global_batch);
        let told = training.global_batch != 512 || advice.plan.job.devices < devices;
        assert_eq!(!advice.remarks.is_empty(), told, "{devices}: {:?}", advice.remarks);
    }
}
