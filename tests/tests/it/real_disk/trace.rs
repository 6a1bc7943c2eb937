//! What `strace` writes down, as calls with their beginning and end.

use std::collections::BTreeMap;

/// A system call.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) name: String,
    /// As strace prints them; a file is followed by its path in angle brackets.
    pub(super) arguments: String,
    /// What it returned; none if it was under way when the process ended.
    pub(super) result: Option<i64>,
    /// Lines of the log: the call began at the first and was over at the second.
    pub(super) begins: usize,
    pub(super) ends: usize,
}

impl Call {
    /// The path of the file that is the first argument.
    pub(super) fn path(&self) -> Option<&str> {
        let (number, rest) = self.arguments.split_once('<')?;
        number.parse::<u32>().ok()?;
        rest.split_once('>').map(|(path, _)| path)
    }

    /// The quoted arguments, with the escapes that strace makes.
    pub(super) fn texts(&self) -> Vec<&str> {
        let (mut texts, mut rest) = (Vec::new(), &*self.arguments);
        while let Some((_, quoted)) = rest.split_once('"') {
            let mut escaped = false;
            let end = quoted.find(|c| {
                let ends = c == '"' && !escaped;
                escaped = c == '\\' && !escaped;
                ends
            });
            let Some(end) = end else { break };
            texts.push(&quoted[..end]);
            rest = &quoted[end + 1..];
        }
        texts
    }
}

/// The calls of a log made with `-f -y`, in the order in which they began.
pub(super) fn parse(log: &str) -> Vec<Call> {
    let mut calls = Vec::new();
    let mut open = BTreeMap::<&str, usize>::new();
    for (line, text) in log.lines().enumerate() {
        let Some((thread, text)) = text.split_once(' ') else { continue };
        let text = text.trim_start();
        if let Some(text) = text.strip_prefix("<... ") {
            let index = open.remove(thread).expect("what is resumed has begun");
            let call: &mut Call = &mut calls[index];
            let (_, rest) = text.split_once("resumed>").unwrap();
            let (arguments, result) = ending(rest);
            call.arguments.push_str(arguments);
            (call.result, call.ends) = (result, line);
        } else if let Some((name, rest)) = text.split_once('(') {
            let (unfinished, rest) = match rest.strip_suffix(" <unfinished ...>") {
                Some(rest) => (true, rest),
                None => (false, rest),
            };
            let (arguments, result) = if unfinished { (rest, None) } else { ending(rest) };
            if unfinished {
                open.insert(thread, calls.len());
            }
            let (name, arguments) = (name.to_string(), arguments.to_string());
            calls.push(Call {
                name,
                arguments,
                result,
                begins: line,
                ends: if unfinished { usize::MAX } else { line },
            });
        }
    }
    calls
}

/// `arguments) = result`, with what strace adds behind it.
fn ending(text: &str) -> (&str, Option<i64>) {
    let Some((arguments, result)) = text.rsplit_once(" = ") else { return (text, None) };
    let result = result.split(|c: char| c != '-' && !c.is_ascii_digit()).next().and_then(|n| n.parse().ok());
    (arguments.trim_end().strip_suffix(')').unwrap_or(arguments), result)
}

#[test]
fn calls_are_put_together() {
    let log = concat!(
        "7  openat(AT_FDCWD</tmp>, \"/tmp/a\", O_RDWR) = 3</tmp/a>\n",
        "7  pwrite64(3</tmp/a>, \"<1.0.0>\\\" = (x)\", 14, 0 <unfinished ...>\n",
        "8  fdatasync(3</tmp/a>) = -1 EIO (Input/output error) (INJECTED)\n",
        "7  <... pwrite64 resumed>) = 14\n",
        "8  +++ exited with 0 +++\n",
    );
    let calls = parse(log);
    let found: Vec<_> = calls.iter().map(|call| (&*call.name, call.result, call.begins, call.ends)).collect();
    assert_eq!(
        found,
        [("openat", Some(3), 0, 0), ("pwrite64", Some(14), 1, 3), ("fdatasync", Some(-1), 2, 2)]
    );
    assert_eq!((calls[1].path(), calls[1].texts()), (Some("/tmp/a"), vec!["<1.0.0>\\\" = (x)"]));
    assert_eq!(calls[0].path(), None);
}
