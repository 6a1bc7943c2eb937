//! The parts of the scripts that need no page: with `node` where it is there, else in the browser.

use std::fs;
use std::process::Command;

use tempfile::TempDir;

use crate::browser::{Page, in_path};
use crate::server::Running;

const CASES: &str = include_str!("cases.js");
const MODULES: [(&str, &str); 3] = [
    ("sse", include_str!("../../src/page/sse.js")),
    ("json", include_str!("../../src/page/json.js")),
    ("metrics", include_str!("../../src/page/metrics.js")),
];

#[test]
fn streams_json_and_metrics_are_read_as_their_formats_say() {
    let failures = match in_path(&["node"]) {
        Some(_) => with_node(),
        None => match with_browser() {
            Some(failures) => failures,
            None => return,
        },
    };
    assert_eq!(failures, "[]");
}

fn with_node() -> String {
    let folder = TempDir::new().unwrap();
    let mut run = String::new();
    for (name, text) in MODULES {
        fs::write(folder.path().join(format!("{name}.mjs")), text).unwrap();
        run.push_str(&format!("import * as {name} from './{name}.mjs';\n"));
    }
    let (_, cases) = CASES.split_once('\n').unwrap();
    run.push_str(&format!(
        "const cases = {cases};\nconsole.log(JSON.stringify(await cases({{ sse, json, metrics }})));\n"
    ));
    fs::write(folder.path().join("run.mjs"), run).unwrap();
    let output = Command::new("node").arg(folder.path().join("run.mjs")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_string()
}

fn with_browser() -> Option<String> {
    let running = Running::new();
    let failures = Page::open(&running).map(|mut page| {
        let imports = MODULES.map(|(name, _)| format!("{name}: await import('/page/{name}.js')")).join(", ");
        let (_, cases) = CASES.split_once('\n').unwrap();
        page.evaluate(&format!("(async () => ({cases})({{ {imports} }}))()")).to_string()
    });
    running.end();
    failures
}
