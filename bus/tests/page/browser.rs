//! Chromium without a window, driven over a pipe by its DevTools protocol: JSON messages, each ended by a zero byte.

use std::env;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::server::Running;

/// Whoever waits longer than this waits for ever.
const PATIENCE: Duration = Duration::from_secs(60);

/// The first of these programs that is there.
pub(crate) fn in_path(names: &[&str]) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    let folders: Vec<_> = env::split_paths(&path).collect();
    let each = names.iter().flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
    each.into_iter().find(|file| file.is_file())
}

/// The page of a server in a browser.
pub(crate) struct Page {
    browser: Child,
    to: ChildStdin,
    from: Receiver<Value>,
    session: String,
    asked: u64,
    /// What came beside answers.
    events: Vec<Value>,
    _home: TempDir,
}

impl Page {
    /// Opens the page of a server; nothing where there is no browser.
    pub(crate) fn open(running: &Running) -> Option<Self> {
        let Some(program) = in_path(&["chromium", "chromium-browser", "google-chrome"]) else {
            eprintln!("skipped: there is no chromium in the path");
            return None;
        };
        let home = TempDir::new().unwrap();
        let mut browser = Command::new("sh")
            .args(["-c", "exec \"$@\" 3<&0 4>&1 >/dev/null 2>&1 </dev/null", "sh"])
            .arg(program)
            // The sandbox is not there in most containers, and only our own page is shown.
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--no-first-run",
                "--remote-debugging-pipe",
            ])
            .arg(format!("--user-data-dir={}", home.path().join("profile").display()))
            .envs([("HOME", home.path()), ("TMPDIR", home.path()), ("XDG_CONFIG_HOME", home.path())])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (tell, from) = channel();
        let mut output = BufReader::new(browser.stdout.take().unwrap());
        thread::spawn(move || {
            let mut message = Vec::new();
            while output.read_until(0, &mut message).is_ok_and(|read| read > 1) {
                message.pop();
                if tell.send(serde_json::from_slice(&message).unwrap()).is_err() {
                    break;
                }
                message.clear();
            }
        });
        let to = browser.stdin.take().unwrap();
        let mut page =
            Self { browser, to, from, session: String::new(), asked: 0, events: Vec::new(), _home: home };
        page.show(running);
        Some(page)
    }

    fn show(&mut self, running: &Running) {
        let target = self.call("Target.createTarget", &json!({"url": "about:blank"}));
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        let session = self.call("Target.attachToTarget", &attach);
        self.session = session["sessionId"].as_str().unwrap().to_string();
        for domain in ["Page.enable", "Runtime.enable", "Log.enable"] {
            self.call(domain, &json!({}));
        }
        self.call("Page.navigate", &json!({"url": format!("http://{}/", running.address)}));
        while !self.events.iter().any(|event| event["method"] == "Page.loadEventFired") {
            let message = self.message();
            self.events.push(message);
        }
    }

    fn message(&self) -> Value {
        self.from.recv_timeout(PATIENCE).expect("the browser says something")
    }

    fn call(&mut self, method: &str, params: &Value) -> Value {
        self.asked += 1;
        let mut message = json!({"id": self.asked, "method": method, "params": params});
        if !self.session.is_empty() {
            message["sessionId"] = self.session.as_str().into();
        }
        self.to.write_all(format!("{message}\0").as_bytes()).unwrap();
        loop {
            let mut answer = self.message();
            if answer["id"] == self.asked {
                assert!(answer.get("error").is_none(), "{method}: {answer}");
                return answer["result"].take();
            }
            self.events.push(answer);
        }
    }

    /// The value of an expression, once it is settled.
    pub(crate) fn evaluate(&mut self, expression: &str) -> Value {
        let params = json!({"expression": expression, "awaitPromise": true, "returnByValue": true});
        let mut answer = self.call("Runtime.evaluate", &params);
        assert!(answer.get("exceptionDetails").is_none(), "{expression}: {answer}");
        answer["result"]["value"].take()
    }

    /// Waits until the document is so that an expression holds.
    pub(crate) fn wait_for(&mut self, condition: &str) {
        let waits = format!(
            "new Promise((resolve) => {{
               const look = () => {{ if ({condition}) {{ observer.disconnect(); resolve(true); }} }};
               const observer = new MutationObserver(look);
               const all = {{ subtree: true, childList: true, attributes: true, characterData: true }};
               observer.observe(document, all);
               look();
             }})"
        );
        assert_eq!(self.evaluate(&waits), true, "{condition}");
    }

    /// The texts of all elements that a selector finds.
    pub(crate) fn texts(&mut self, selector: &str) -> Vec<String> {
        let found =
            self.evaluate(&format!("[...document.querySelectorAll({selector:?})].map((e) => e.textContent)"));
        serde_json::from_value(found).unwrap()
    }

    pub(crate) fn click(&mut self, selector: &str) {
        self.evaluate(&format!("document.querySelector({selector:?}).click()"));
    }

    /// Writes into a field.
    pub(crate) fn fill(&mut self, selector: &str, value: &str) {
        self.evaluate(&format!(
            "(() => {{ const field = document.querySelector({selector:?}); field.value = {value:?};
               field.dispatchEvent(new Event('change', {{ bubbles: true }})); }})()"
        ));
    }

    pub(crate) fn submit(&mut self, selector: &str) {
        self.evaluate(&format!("document.querySelector({selector:?}).requestSubmit()"));
    }

    /// Shows everything from the first event on.
    pub(crate) fn begin_at_the_start(&mut self) {
        self.fill("[name=begin]", "start");
        self.submit("#wanted");
    }

    /// Holds that no script failed, and that the policy had nothing to forbid.
    pub(crate) fn is_sound(&mut self) {
        // What was said before this is answered is there.
        self.evaluate("0");
        for event in &self.events {
            let entry = &event["params"]["entry"];
            assert_ne!(event["method"], "Runtime.exceptionThrown", "{event}");
            assert!(entry["level"] != "error" || entry["source"] == "network", "{event}");
        }
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        // Its profile is gone when all of its processes are, so it is asked to end before it is made to.
        let asked = self.to.write_all(b"{\"id\":0,\"method\":\"Browser.close\"}\0");
        while asked.is_ok() && self.from.recv_timeout(PATIENCE).is_ok() {}
        _ = self.browser.kill();
        _ = self.browser.wait();
    }
}
