//! tmp
use dbdyno_record::*;
use hdrhistogram::Histogram;
fn main() {
    let dir = std::path::PathBuf::from(std::env::args().nth(1).unwrap());
    let text = std::fs::read_to_string("/srv/dyn/target-record/manifest.json").unwrap();
    let mut m: Manifest = serde_json::from_str(&text).unwrap();
    m.order = (1..=25).map(|b| CellId { block: b, variant: "wal".into(), workload: "insert-benchmark".into() }).collect();
    let spec: StepEvent = serde_json::from_str(&std::fs::read_to_string("/srv/dyn/target-record/spec.json").unwrap()).unwrap();
    let t = std::time::Instant::now();
    let run = RunWriter::create(&dir, &m).unwrap();
    for id in &m.order {
        let cell = run.cell(id).unwrap();
        for s in 0..42 {
            let mut w = cell.step(&format!("s{s}")).unwrap();
            w.event(&spec).unwrap();
            let mut h = Histogram::<u64>::new_with_bounds(1, 3_600_000_000, 3).unwrap();
            let mut x = 12345u64;
            for sec in 0..60u64 {
                h.reset();
                for _ in 0..2000 { x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407); let u = (x >> 33) % 1000; h.record(200 + u * u / 300).unwrap(); }
                for tag in ["query/service", "query/response"] { w.histogram(tag, sec * 1_000_000, (sec + 1) * 1_000_000, &h).unwrap(); }
                for client in 1..=4 { w.interval(&Interval { from_us: sec * 1_000_000, to_us: (sec + 1) * 1_000_000, client, kind: "query".into(), ..Default::default() }).unwrap(); }
            }
            w.sync().unwrap();
        }
    }
    println!("write {:?}", t.elapsed());
    let t = std::time::Instant::now();
    let r = Run::open(run.dir()).unwrap();
    println!("open {:?} {:?}", t.elapsed(), r.warnings.len());
    let t = std::time::Instant::now();
    let mut n = 0;
    for c in &r.cells { for s in &c.steps { assert!(s.damaged.is_none()); let mut sum = Histogram::<u64>::new_with_bounds(1, 3_600_000_000, 3).unwrap(); for span in &s.histograms { span.add_to(&mut sum).unwrap(); n += 1; } } }
    println!("merge {n} {:?}", t.elapsed());
    println!("{}", std::fs::read_to_string("/proc/self/status").unwrap().lines().find(|l| l.starts_with("VmHWM")).unwrap());
}
