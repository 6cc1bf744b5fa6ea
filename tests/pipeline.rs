//! Pipelines beside golden simulations: time, end of every stage, and what is kept at most.

use std::fs::File;
use std::io::Read;

use flate2::read::GzDecoder;
use phaze::plan::PassOrder;
use phaze::plan::PipelinedBatch;
use phaze::plan::StageTime;
use phaze::plan::one_f_one_b;
use serde_json::Value;

fn golden(name: &str) -> Vec<Value> {
    let path = format!("tests/golden/pipeline/{name}.jsonl.gz");
    let mut text = String::new();
    GzDecoder::new(File::open(path).unwrap()).read_to_string(&mut text).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn numbers(value: &Value) -> Vec<u64> {
    value.as_array().unwrap().iter().map(|number| number.as_u64().unwrap()).collect()
}

fn times(case: &Value) -> Vec<StageTime> {
    let both = numbers(&case["forward"]).into_iter().zip(numbers(&case["backward"]));
    both.map(|(forward, backward)| StageTime { forward, backward }).collect()
}

#[test]
fn every_golden_1f1b_pipeline_is_equal_played_and_by_its_closed_form() {
    let cases = golden("one_f_one_b");
    assert_eq!(cases.len(), 400);
    for case in cases {
        let times = times(&case);
        let batch = PipelinedBatch {
            order: PassOrder::OneForwardOneBackward,
            ranks: times.len(),
            micro_batches: case["micro_batches"].as_u64().unwrap(),
            times: &times,
            delay: 0,
        };
        let ends = numbers(&case["stage_ends"]);
        assert_eq!(batch.play(|_| ()).as_ref(), Some(&ends), "{case}");
        let wide: Vec<u128> = ends.iter().map(|&end| end.into()).collect();
        assert_eq!(batch.stage_ends().as_ref(), Some(&wide), "{case}");
        let time = u128::from(case["time"].as_u64().unwrap());
        assert_eq!(batch.time(), Some(time), "{case}");
        assert_eq!(one_f_one_b::time(&times, batch.micro_batches), time, "{case}");
        assert_eq!(one_f_one_b::stage_ends(&times, batch.micro_batches), wide, "{case}");
    }
}

#[test]
fn every_golden_interleaved_pipeline_is_equal_in_time_and_peaks() {
    let cases = golden("interleaved");
    assert_eq!(cases.len(), 300);
    for case in cases {
        let count = |of: &str| case[of].as_u64().unwrap();
        let ranks = usize::try_from(count("ranks")).unwrap();
        let chunks = usize::try_from(count("chunks")).unwrap();
        let order = PassOrder::Interleaved { chunks, group: count("group") };
        let (times, micro_batches) = (times(&case), count("micro_batches"));
        assert_eq!(order.check(ranks, micro_batches), Ok(()), "{case}");
        let batch = PipelinedBatch { order, ranks, micro_batches, times: &times, delay: 0 };
        assert_eq!(batch.time(), Some(count("time").into()), "{case}");
        let kept = numbers(&case["kept"]);
        let peaks = |of: &dyn Fn(usize) -> u128| -> Vec<u128> {
            (0..ranks).map(|rank| order.peak(ranks, micro_batches, rank, of)).collect()
        };
        let wide =
            |of: &str| -> Vec<u128> { numbers(&case[of]).into_iter().map(u128::from).collect() };
        assert_eq!(peaks(&|_| 1), wide("peak_chunks"), "{case}");
        assert_eq!(peaks(&|stage| kept[stage].into()), wide("peak_kept"), "{case}");
    }
}
