//! `phaze estimate` and `phaze designs` as a user runs them.

mod command;

use command::phaze;

fn point(m: u64, count: u64) -> String {
    format!(
        "{{\"matmul\": {{\"b\": 1, \"m\": {m}, \"k\": 4096, \"n\": 11008}}, \"core\": {{\"count\": \
         {count}, \"width\": 128, \"depth\": 128, \"glb_bytes\": 134217728}}, \"hardware\": \
         \"icml24\"}}\n"
    )
}

#[test]
fn answers_come_in_input_order_whatever_the_threads() {
    let input: String = (1..60).map(|i| point(i * 37, 1 << (i % 7))).collect();
    let one = phaze(&["estimate", "--jobs", "-", "--threads", "1"], &input);
    let four = phaze(&["estimate", "--jobs", "-", "--threads", "4"], &input);
    assert!(one.status.success());
    assert_eq!(one.stdout, four.stdout);
    let text = String::from_utf8(one.stdout).unwrap();
    assert_eq!(text.lines().count(), 59);
    for line in text.lines() {
        let answer: serde_json::Value = serde_json::from_str(line).unwrap();
        assert!(answer["cycles"].as_u64().unwrap() > 0);
        assert!(answer["energy_pj"].as_f64().unwrap() > 0.0);
        let of_peak = answer["fraction_of_peak"].as_f64().unwrap();
        assert!((0.0..=1.0).contains(&of_peak), "{of_peak}");
        assert!(["compute", "local", "glb", "hbm"].contains(&answer["limit"].as_str().unwrap()));
        assert!(answer["mapping"]["glb_tile"]["k"].as_u64().unwrap() > 0);
    }
}

#[test]
fn a_malformed_line_is_named_and_nothing_is_answered() {
    let input = point(64, 8).repeat(6) + "{\"matmul\": nonsense}\n" + &point(64, 8);
    let found = phaze(&["estimate", "--jobs", "-"], &input);
    assert_eq!(found.status.code(), Some(2));
    assert!(found.stdout.is_empty());
    let error = String::from_utf8(found.stderr).unwrap();
    assert!(error.starts_with("error: standard input: line 7: "), "{error}");
}

#[test]
fn bad_requests_are_refused_with_a_reason() {
    let cases: [(&[&str], &str); 8] = [
        (&["estimate", "--matmul", "1x0x1x1"], "`matmul.m = 0` is out of range"),
        (&["estimate", "--matmul", "1x2x3"], "batch x rows x inner x columns"),
        (&["estimate", "--matmul", "2x2147483648x2147483648x2"], "more than 2^62"),
        (&["estimate", "--matmul", "1x1x1x1", "--design", "tpv4"], "did you mean `tpuv4`?"),
        (&["estimate", "--matmul", "1x1x1x1", "--local-kib", "1"], "cannot hold one tile"),
        (&["estimate", "--matmul", "1x1x1x1", "--energy-slack", "-1"], "allowed are 0 to 10"),
        (&["estimate", "--model", "gpt5"], "unknown model"),
        (&["designs", "--design", "no/such/file.toml"], "no/such/file.toml: cannot be read"),
    ];
    for (arguments, expected) in cases {
        let found = phaze(arguments, "");
        assert_eq!(found.status.code(), Some(2), "{arguments:?}");
        let error = String::from_utf8(found.stderr).unwrap();
        assert!(error.contains(expected), "{arguments:?}: {error}");
        assert!(found.stdout.is_empty(), "{arguments:?}");
    }
}

#[test]
fn a_matmul_is_drawn_as_loops() {
    let found = phaze(&["estimate", "--matmul", "1x2048x12288x12288", "--design", "tpuv4"], "");
    let text = String::from_utf8(found.stdout).unwrap();
    for part in ["2,359,552", "100.0 %", "compute", "└ GLB", "└ local", "└ array", "interpolated"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn the_space_is_counted_and_listed() {
    let counted = phaze(&["designs", "--json"], "");
    let counted: serde_json::Value = serde_json::from_slice(&counted.stdout).unwrap();
    assert_eq!(counted["designs"], 29_360);
    let listed = String::from_utf8(phaze(&["designs", "--csv"], "").stdout).unwrap();
    assert_eq!(listed.lines().count(), 29_361);
}

#[test]
fn a_part_is_shown_beside_its_published_figures() {
    let text = String::from_utf8(phaze(&["designs", "--design", "h100-sxm"], "").stdout).unwrap();
    for expected in [
        "made in 5 nm",
        "814.0 mm², model +1.1 % (NVIDIA H100 white paper)",
        "700.0 W, model -2.3 %",
        "cost of making                      $3,056  $3,320, model -8.0 %",
        "links between nodes: 50 GB/s at $85 per GB/s",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    let json = |design: &str| -> serde_json::Value {
        let found = phaze(&["designs", "--design", design, "--json"], "");
        serde_json::from_slice(&found.stdout).unwrap()
    };
    let found = json("h100-sxm");
    for (whole, parts) in [
        ("die_mm2", "die_parts_mm2"),
        ("tdp_w", "tdp_parts_w"),
        ("cost_usd", "cost_parts_usd"),
        ("owned_by_buyer_usd", "owned_by_buyer_parts_usd"),
    ] {
        let modelled = &found["chip"]["modelled"];
        let sum: f64 =
            modelled[parts].as_object().unwrap().values().map(|part| part.as_f64().unwrap()).sum();
        assert!((sum - modelled[whole].as_f64().unwrap()).abs() < 1e-6, "{whole}: {modelled}");
    }
    assert_eq!(json("l40s")["chip"]["modelled"], serde_json::Value::Null);
    assert_eq!(json("l40s")["chip"]["published"]["tdp_w"]["value"], 350.0);
}

#[test]
fn a_part_whose_knobs_are_turned_is_another() {
    let found = phaze(&["designs", "--design", "h100-sxm", "--tensor-cores", "140"], "");
    let text = String::from_utf8(found.stdout).unwrap();
    assert!(text.contains("made in 5 nm") && !text.contains("814.0"), "{text}");
    let large = phaze(&["designs", "--design", "tpuv4", "--tensor-cores", "64"], "");
    let text = String::from_utf8(large.stdout).unwrap();
    assert!(text.contains("no reticle holds it: 858.0 mm² are the most"), "{text}");
    let huge = phaze(&["designs", "--design", "h100-sxm", "--glb-mib", "1000000"], "");
    assert!(String::from_utf8(huge.stdout).unwrap().contains("larger than a wafer"));
}
