//! Tests runs that start at the same time in one folder.

use crate::commands::{TWO_VARIANTS, short_plan};
use crate::support::Desk;

#[test]
fn runs_that_start_at_the_same_time_all_complete() {
    let desk = Desk::new();
    desk.write("p.toml", &short_plan(TWO_VARIANTS));
    let running: Vec<_> = (0..4)
        .map(|number| {
            let mut command = desk.command(&["run", "p.toml", "--quiet"]);
            let output = |name: &str| std::fs::File::create(desk.path(&format!("{name}{number}"))).unwrap();
            command.stdout(output("out")).stderr(output("err")).spawn().unwrap()
        })
        .collect();
    for (number, mut child) in running.into_iter().enumerate() {
        let code = child.wait().unwrap().code();
        assert_eq!(code, Some(0), "{}", std::fs::read_to_string(desk.path(&format!("err{number}"))).unwrap());
    }
    assert_eq!(desk.run_dirs().len(), 4);
}
