//! What the page shows of a bus that runs, and what it does to it.

use strandline::bus::{BusSettings, Retention};
use strandline_bus::Guard;

use crate::browser::Page;
use crate::server::Running;

/// Runs a test with a page, where there is a browser.
fn with_page(running: Running, test: impl FnOnce(Running, &mut Page) -> Running) {
    let Some(mut page) = Page::open(&running) else {
        running.end();
        return;
    };
    let running = test(running, &mut page);
    page.is_sound();
    drop(page);
    running.end();
}

#[test]
fn events_and_subscriptions_are_shown_and_markup_is_text() {
    let running = Running::new();
    let markup = "<img src=x onerror=globalThis.ran=1>";
    running.subscribe("ledger");
    running.publish(&format!("org.example.{markup}"), &format!("{{\"{markup}\":\"{markup}\",\"n\":1.50}}"));
    // What calls itself a notice is an event all the same: it has a number.
    running.publish("strandline.gap", "{}");
    with_page(running, |running, page| {
        page.begin_at_the_start();
        page.wait_for("document.querySelectorAll('#events .event').length === 2");
        assert_eq!(
            page.texts("#events .type"),
            ["strandline.gap", "org.example.<img src=x onerror=globalThis.ran=1>"]
        );
        assert_eq!(page.texts("#events .seq"), ["2", "1"]);
        assert_eq!(page.texts("#events .notice"), [""; 0]);
        page.click("#events li:last-child summary");
        page.wait_for("document.querySelector('#events .data') !== null");
        let data = page.texts("#events .data").join("");
        assert_eq!(data, format!("{{\n  \"{markup}\": \"{markup}\",\n  \"n\": 1.50\n}}"));
        page.wait_for("document.querySelectorAll('#subscriptions tr').length === 2");
        assert_eq!(page.texts("#subscriptions tr:first-child > *")[0], "ledger");
        assert_eq!(page.texts("#subscriptions tr:last-child > *")[0], "unnamed");
        let made = "document.images.length + ':' + String(globalThis.ran)";
        assert_eq!(page.evaluate(made), "0:undefined");
        running
    });
}

#[test]
fn a_filter_is_the_servers_and_a_bad_one_is_told() {
    let running = Running::new();
    for event_type in ["a", "b", "a c", "b"] {
        running.publish(event_type, "1");
    }
    with_page(running, |running, page| {
        page.fill("[name=type]", "a c\nb");
        page.begin_at_the_start();
        page.wait_for("document.querySelectorAll('#events .event').length === 3");
        assert_eq!(page.texts("#events .seq"), ["4", "3", "2"]);
        page.fill("[name=begin]", "sequence");
        page.fill("[name=sequence]", "3");
        page.submit("#wanted");
        page.wait_for("document.querySelectorAll('#events .event').length === 2");
        assert_eq!(page.texts("#events .seq"), ["4", "3"]);
        page.fill("[name=domain]", "300");
        page.submit("#wanted");
        page.wait_for("document.getElementById('status').dataset.state === 'refused'");
        assert!(page.texts("#status")[0].contains("`300` is no domain"), "{:?}", page.texts("#status"));
        running
    });
}

#[test]
fn a_stream_goes_on_where_it_was_after_a_pause_and_after_the_server_ended() {
    with_page(Running::new(), |running, page| {
        running.publish("before", "1");
        page.begin_at_the_start();
        page.wait_for("document.querySelectorAll('#events .event').length === 1");
        page.click("#pause");
        assert_eq!(page.texts("#status"), ["Paused: after 1"]);
        running.publish("in.between", "1");
        page.click("#pause");
        page.wait_for("document.querySelectorAll('#events .event').length === 2");
        let ended = running.end();
        page.wait_for("document.querySelector('#events .notice') !== null");
        let running = ended.begin_again();
        running.publish("after", "1");
        page.wait_for("document.querySelectorAll('#events .event').length === 3");
        let rows = page.texts("#events .type, #events .notice strong");
        assert_eq!(rows, ["after", "Shutdown", "in.between", "before"]);
        running
    });
}

#[test]
fn a_gap_is_told_and_the_list_is_bounded() {
    let running = Running::new();
    let publish = |running: &Running, events: u64| {
        let tickets: Vec<_> = (0..events)
            .map(|_| {
                let draft =
                    strandline::EventDraft { domain: 1, event_type: "t", source: "/test", payload: b"1" };
                running.bus.publish_nowait(draft).unwrap()
            })
            .collect();
        tickets.into_iter().for_each(|ticket| _ = ticket.wait().unwrap());
    };
    publish(&running, 1_001);
    with_page(running, |running, page| {
        page.begin_at_the_start();
        page.wait_for("document.querySelector('#events .gap') !== null");
        let gap = page.texts("#events .gap").join("");
        assert!(gap.contains("events 1 to 1,001 are not delivered, 1,001 events that match"), "{gap}");
        publish(&running, 500);
        page.wait_for("document.querySelector('#events .seq')?.textContent === '1501'");
        let rows = page.texts("#events > li");
        assert_eq!(rows.len(), 200);
        assert_eq!(page.texts("#event-count"), ["200 of 500 events seen"]);
        running
    });
}

#[test]
fn notices_are_shown_as_what_they_are() {
    with_page(Running::new(), |running, page| {
        page.evaluate(
            "import('/page/events.js').then(({ EventList }) => {
               const list = new EventList();
               const notices = [['awaiting', '{\"sequence\":7}'], ['ended', '{}'], ['else', '<b>']];
               for (const [type, data] of notices) list.add({ id: null, type: `strandline.${type}`, data });
             })",
        );
        page.wait_for("document.querySelectorAll('#events .notice').length === 3");
        assert_eq!(page.texts("#events .notice strong"), ["strandline.else", "Ended", "Awaiting"]);
        let words = page.texts("#events .notice span");
        assert_eq!(words[0], "<b>");
        assert!(words[1].starts_with("another connection has the subscription"), "{words:?}");
        assert_eq!(words[2], "nothing more until 7 is acknowledged");
        running
    });
}

#[test]
fn the_latency_of_syncs_is_shown_where_the_server_has_it() {
    with_page(Running::new(), |running, page| {
        let shown = page.evaluate(
            "import('/page/rates.js').then(({ Rates }) => {
               const rates = new Rates();
               const look = (text) => {
                 rates.show({ next: 1 }, text);
                 const is = document.getElementById('sync').hidden ? 'hidden' : 'shown';
                 return `${is}: ${document.getElementById('sync-figure').textContent}`;
               };
               const metrics = (fast, all) => [['0.001', fast], ['0.002', all], ['+Inf', all]]
                 .map(([le, count]) => `strandline_sync_seconds_bucket{le=\"${le}\"} ${count}`).join('\\n');
               return [look(null), look(metrics(5, 5)), look(metrics(5, 105)), look(metrics(5, 105))];
             })",
        );
        assert_eq!(shown[0], "hidden: –");
        assert_eq!(shown[2], "shown: 99 % within 2.0 ms, at most 2.0 ms");
        assert_eq!(shown[3], "shown: no syncs, at most 2.0 ms");
        running
    });
}

#[test]
fn an_event_is_published_with_its_digits_and_a_problem_is_told() {
    with_page(Running::new(), |running, page| {
        page.wait_for("document.getElementById('status').dataset.state === 'listening'");
        page.fill("#publish [name=type]", "org.example.moored");
        page.fill("#publish [name=source]", "/harbour");
        page.fill("#publish [name=data]", "{\"a\": }");
        page.submit("#publish");
        page.wait_for("document.getElementById('publish-outcome').textContent !== ''");
        assert!(page.texts("#publish-outcome")[0].starts_with("The data is no JSON"));
        page.fill("#publish [name=data]", "{\"a\": 12345678901234567890.10}");
        page.fill("#publish [name=id]", "one");
        page.submit("#publish");
        page.wait_for("document.getElementById('publish-outcome').textContent === 'Published as 1.'");
        page.submit("#publish");
        page.wait_for(
            "document.getElementById('publish-outcome').textContent.startsWith('It was published')",
        );
        page.wait_for("document.querySelector('#events .event') !== null");
        assert_eq!(page.texts("#events .preview"), ["{\"a\": 12345678901234567890.10}"]);
        page.fill("#publish [name=id]", "two");
        page.fill("#publish [name=type]", &"long".repeat(300));
        page.submit("#publish");
        page.wait_for("document.querySelector('#publish-outcome.problem') !== null");
        assert!(
            page.texts("#publish-outcome")[0].contains("1,024")
                || page.texts("#publish-outcome")[0].contains("1024")
        );
        running
    });
}

#[test]
fn a_subscription_is_removed_once_it_was_asked() {
    let running = Running::new();
    running.subscribe("ledger");
    running.subscribe("tides");
    with_page(running, |running, page| {
        page.wait_for("document.querySelectorAll('#subscriptions button').length === 2");
        page.click("#subscriptions button[aria-label='Remove ledger']");
        page.wait_for("document.getElementById('remove').open");
        assert_eq!(page.texts("#remove-name"), ["ledger"]);
        page.click("#remove-no");
        page.wait_for("!document.getElementById('remove').open");
        assert_eq!(running.names(), ["ledger", "tides"]);
        page.click("#subscriptions button[aria-label='Remove ledger']");
        page.click("#remove-yes");
        page.wait_for("document.querySelectorAll('#subscriptions button').length === 1");
        assert_eq!(running.names(), ["tides"]);
        assert_eq!(page.evaluate("document.activeElement.id"), "subscriptions-title");
        // Others come and go, and whoever is at a row stays there.
        running.subscribe("berths");
        page.wait_for("document.querySelectorAll('#subscriptions button').length === 2");
        page.evaluate("document.querySelector('[aria-label=\"Remove berths\"]').focus()");
        running.bus.remove("tides").unwrap();
        page.wait_for("document.querySelectorAll('#subscriptions button').length === 1");
        assert_eq!(page.evaluate("document.activeElement.ariaLabel"), "Remove berths");
        running
    });
}

#[test]
fn a_token_is_asked_for_and_shown_with_every_request() {
    let guard = Guard { token: Some("a token of ours".into()), ..Guard::default() };
    let running = Running::with(BusSettings::default(), guard);
    running.publish("behind.the.token", "1");
    with_page(running, |running, page| {
        page.begin_at_the_start();
        page.wait_for("!document.getElementById('token').hidden");
        page.fill("#token-value", "another token");
        page.submit("#token");
        page.wait_for("document.getElementById('token-problem').textContent.includes('did not take')");
        page.fill("#token-value", "a token of ours");
        page.submit("#token");
        page.wait_for("document.querySelector('#events .event') !== null");
        page.wait_for("document.querySelector('#subscriptions tr') !== null");
        assert_eq!(page.evaluate("document.getElementById('token').hidden"), true);
        assert_eq!(page.evaluate("document.getElementById('token-value').value"), "");
        running
    });
}

#[test]
fn segments_are_retained_pinned_or_expired() {
    let retention = Retention { bytes_max: 1 << 20, compact_above: 200 << 10, ..Retention::default() };
    let running = Running::with(BusSettings::with_retention(retention), Guard::default());
    let payload = format!("\"{}\"", "x".repeat(30 << 10));
    let publish = |running: &Running, events: u32| {
        (0..events).for_each(|_| _ = running.publish("t", &payload));
    };
    // It is there first: compaction could be faster than one that comes after the events.
    running.subscribe("ledger");
    with_page(running, |running, page| {
        page.wait_for("document.getElementById('next').textContent === '1'");
        publish(&running, 5);
        page.wait_for("document.getElementById('next').textContent === '6'");
        let segments = page.texts("#segment-list li");
        assert!(segments[0].starts_with("events 1 to "), "{segments:?}");
        assert!(segments.iter().all(|segment| segment.ends_with(", pinned")), "{segments:?}");
        running.bus.remove("ledger").unwrap();
        page.wait_for("document.querySelectorAll('#strip .pinned').length === 0");
        publish(&running, 20);
        page.wait_for("document.querySelectorAll('#strip .expired').length > 0");
        let segments = page.texts("#segment-list li");
        let gone = segments.iter().take_while(|segment| segment.ends_with(", expired")).count();
        assert!(gone > 0 && segments[0].starts_with("events 1 to "), "{segments:?}");
        assert!(segments[gone..].iter().all(|segment| segment.ends_with(", retained")), "{segments:?}");
        let blocks =
            page.evaluate("[...document.querySelectorAll('#strip > *')].map((block) => block.title)");
        assert_eq!(blocks, serde_json::json!(segments));
        // The start is that of what is kept: it is no gap.
        page.begin_at_the_start();
        page.wait_for("document.querySelector('#events .seq')?.textContent === '25'");
        assert_eq!(page.texts("#events .notice"), [""; 0]);
        running
    });
}
