//! Panics of tasks: a runtime catches them, and nobody would hear of them.

use std::cell::{Cell, RefCell};
use std::sync::Once;

thread_local! {
    static LAST: RefCell<Option<String>> = const { RefCell::new(None) };
    static WATCHES: Cell<bool> = const { Cell::new(false) };
}

/// Watches the panics of this thread as long as it lives.
pub(super) struct Panics(());

impl Panics {
    pub(super) fn watch() -> Self {
        static HOOK: Once = Once::new();
        HOOK.call_once(|| {
            let before = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| {
                if WATCHES.get() {
                    LAST.set(Some(panic.to_string()));
                }
                before(panic);
            }));
        });
        WATCHES.set(true);
        LAST.set(None);
        Self(())
    }

    /// The last panic since this was asked.
    pub(super) fn last(&self) -> Option<String> {
        LAST.take()
    }
}

impl Drop for Panics {
    fn drop(&mut self) {
        WATCHES.set(false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_that_somebody_caught_is_heard_of() {
        let panics = Panics::watch();
        assert_eq!(panics.last(), None);
        let caught = std::panic::catch_unwind(|| std::panic::resume_unwind(Box::new("no hook")));
        assert!(caught.is_err());
        assert_eq!(panics.last(), None, "what goes on was heard of before");
        let caught = std::panic::catch_unwind(|| panic!("on purpose: a test"));
        assert!(caught.is_err());
        assert!(panics.last().is_some_and(|text| text.contains("on purpose")));
        assert_eq!(panics.last(), None);
    }
}
