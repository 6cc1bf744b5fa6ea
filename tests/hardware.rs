//! The published design space, design by design.

use std::collections::BTreeSet;
use std::io::Read;

use phaze::hardware::DesignSpace;
use phaze::input::hardware::preset;
use phaze::units::Bytes;

#[test]
fn the_published_space_enumerates_in_the_published_order_with_the_published_areas() {
    let physics = preset("tpuv4-like", "").unwrap().physics;
    let (designs, counts) = DesignSpace::published().designs(&physics);
    assert_eq!((designs.len(), counts.designs, counts.unbuildable), (29_360, 29_360, 0));
    assert_eq!(counts.points, counts.designs + counts.too_large + counts.too_small);

    let mut text = String::new();
    let file = std::fs::File::open("tests/golden/designs.csv.gz").unwrap();
    flate2::read::GzDecoder::new(file).read_to_string(&mut text).unwrap();
    let rows: Vec<&str> = text.lines().skip(1).collect();
    assert_eq!(rows.len(), designs.len());
    for (row, candidate) in rows.iter().zip(&designs) {
        let fields: Vec<&str> = row.split(',').collect();
        let design = candidate.design;
        let knobs = [
            design.tensor_cores,
            design.vector_cores,
            design.width,
            design.depth,
            design.vector_width,
            design.glb.0,
        ];
        assert_eq!(fields[..6], knobs.map(|knob| knob.to_string()), "{row}");
        let chip = candidate.build(Bytes::GIB * 80, &physics).unwrap();
        let area = chip.total_area().square_micrometres();
        let published: f64 = fields[6].parse().unwrap();
        assert!((area / published - 1.0).abs() < 1e-9, "{row}: {area}");
    }
}

#[test]
fn the_published_space_has_few_distinct_cores() {
    let physics = preset("tpuv4-like", "").unwrap().physics;
    let (designs, _) = DesignSpace::published().designs(&physics);
    let tensor: BTreeSet<_> = designs
        .iter()
        .map(|c| (c.design.tensor_cores, c.design.width, c.design.depth, c.design.glb))
        .collect();
    let vector: BTreeSet<_> = designs
        .iter()
        .map(|c| (c.design.vector_cores, c.design.vector_width, c.design.glb))
        .collect();
    assert_eq!((tensor.len(), vector.len()), (4_186, 697));
}
