//! What is served, and that it holds to its policy also in browsers that do not enforce all of it.

use std::collections::BTreeMap;

use crate::server::Running;

/// Everything that the page loads, by its path, as the server answers: the head and the text.
fn files() -> BTreeMap<String, (String, String)> {
    let running = Running::new();
    let mut found = BTreeMap::new();
    let mut wanted = vec!["/".to_string()];
    while let Some(path) = wanted.pop() {
        if found.contains_key(&path) {
            continue;
        }
        let (head, text) = running.get(&path);
        assert!(head.starts_with("http/1.1 200 "), "{path}: {head}");
        wanted.extend(references(&path, &text));
        found.insert(path, (head, text));
    }
    running.end();
    found
}

/// The paths that a file names, as links or imports.
fn references(path: &str, text: &str) -> Vec<String> {
    let marks: &[(&str, char)] =
        if path == "/" { &[("href=\"", '"'), ("src=\"", '"')] } else { &[("from './", '\'')] };
    let folder = &path[..=path.rfind('/').unwrap()];
    let of = |(before, end): &(&str, char)| -> Vec<String> {
        let names = text.split(before).skip(1).map(|rest| rest.split(*end).next().unwrap().to_string());
        names.filter(|name| !name.starts_with('#')).map(|name| format!("{folder}{name}")).collect()
    };
    marks.iter().flat_map(of).collect()
}

#[test]
fn every_file_is_served_with_its_type_and_the_policy() {
    let files = files();
    for path in ["/", "/page/icon.svg", "/page/page.css", "/page/page.js", "/page/sse.js"] {
        assert!(files.contains_key(path), "{path} is not among {:?}", files.keys());
    }
    for (path, (head, _)) in &files {
        let media_type = match path.rsplit_once('.').map(|(_, ending)| ending) {
            None => "text/html; charset=utf-8",
            Some("css") => "text/css; charset=utf-8",
            Some("js") => "text/javascript; charset=utf-8",
            Some("svg") => "image/svg+xml",
            Some(_) => panic!("nothing is known of {path}"),
        };
        assert!(head.contains(&format!("content-type: {media_type}\r\n")), "{path}: {head}");
        assert!(head.contains("x-content-type-options: nosniff"), "{path}: {head}");
        let policy = head.lines().find_map(|line| line.strip_prefix("content-security-policy: ")).unwrap();
        for part in [
            "default-src 'none'",
            "script-src 'self'",
            "style-src 'self'",
            "connect-src 'self'",
            "frame-ancestors 'none'",
            "require-trusted-types-for 'script'",
        ] {
            assert!(policy.split("; ").any(|found| found == part), "{path}: {part:?} is not in {policy:?}");
        }
        assert!(!policy.contains("unsafe"), "{path}: {policy}");
    }
}

#[test]
fn nothing_is_inline_or_from_elsewhere_or_made_of_markup() {
    for (path, (_, text)) in files() {
        // The name of a format, which nobody looks up.
        let text = text.replace("xmlns=\"http://www.w3.org/2000/svg\"", "");
        for forbidden in
            ["http://", "https://", "src=\"//", "url(", "@import", "<style", " style=", "javascript:"]
        {
            assert!(!text.contains(forbidden), "{path}: {forbidden}");
        }
        for forbidden in [
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "createContextualFragment",
            "DOMParser",
            "setHTML",
            "eval(",
            "Function(",
        ] {
            assert!(!text.contains(forbidden), "{path}: {forbidden}");
        }
        assert_eq!(text.matches("<script").count(), text.matches("<script type=\"module\" src=\"").count());
        let attributes = text.split_whitespace().filter_map(|word| word.split_once("=\""));
        assert!(attributes.into_iter().all(|(name, _)| !name.starts_with("on")), "{path}: a handler");
    }
}
