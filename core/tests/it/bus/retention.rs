//! Retention and subscriptions: who pins what, and who is told what went.
