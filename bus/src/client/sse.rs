//! Server-sent events as they arrive: the stream is taken apart wherever the network cut it.

/// One event of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Message {
    /// Its number, if it has one.
    pub(super) id: Option<String>,
    /// Its kind; `message` where the stream does not say.
    pub(super) event: String,
    pub(super) data: String,
}

/// Longer lines, and more data in one event, are no stream of ours: in bytes.
const LENGTH_MAX: usize = 48 << 20;

/// The stream is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum SseError {
    #[error("an event has more than {LENGTH_MAX} bytes")]
    TooLong,
    #[error("a line is no UTF-8")]
    NotText,
}

/// Takes a stream apart.
#[derive(Debug, Default)]
pub(super) struct Parser {
    /// The beginning of a line.
    line: Vec<u8>,
    /// The last line ended with CR; LF belongs to it.
    after_cr: bool,
    message: Message,
    has_data: bool,
    /// What the server asks for, in milliseconds.
    pub(super) retry_ms: Option<u64>,
}

impl Parser {
    /// Takes the next bytes; gives the events that are whole.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> Result<Vec<Message>, SseError> {
        let mut messages = Vec::new();
        for &byte in bytes {
            let follows_cr = std::mem::take(&mut self.after_cr);
            match byte {
                b'\n' if follows_cr => {}
                b'\n' | b'\r' => {
                    self.after_cr = byte == b'\r';
                    let line = std::mem::take(&mut self.line);
                    self.take_line(&line, &mut messages)?;
                    // The buffer serves the next line.
                    self.line = line;
                    self.line.clear();
                }
                _ if self.line.len() == LENGTH_MAX => return Err(SseError::TooLong),
                _ => self.line.push(byte),
            }
        }
        Ok(messages)
    }

    fn take_line(&mut self, line: &[u8], messages: &mut Vec<Message>) -> Result<(), SseError> {
        let line = std::str::from_utf8(line).map_err(|_| SseError::NotText)?;
        if line.is_empty() {
            let message = std::mem::take(&mut self.message);
            if std::mem::take(&mut self.has_data) {
                let event = if message.event.is_empty() { "message".into() } else { message.event };
                messages.push(Message { event, ..message });
            }
            return Ok(());
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "id" if !value.contains('\0') => self.message.id = Some(value.to_string()),
            "event" => self.message.event = value.to_string(),
            "data" => self.take_data(value)?,
            "retry" => self.retry_ms = value.parse().ok().or(self.retry_ms),
            // Comments begin with a colon; what is not known is passed over.
            _ => {}
        }
        Ok(())
    }

    fn take_data(&mut self, value: &str) -> Result<(), SseError> {
        if self.message.data.len() + value.len() > LENGTH_MAX {
            return Err(SseError::TooLong);
        }
        if std::mem::replace(&mut self.has_data, true) {
            self.message.data.push('\n');
        }
        self.message.data.push_str(value);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(parser: &mut Parser, pieces: &[&[u8]]) -> Vec<(Option<String>, String, String)> {
        let messages = pieces.iter().flat_map(|piece| parser.feed(piece).unwrap());
        messages.map(|message| (message.id, message.event, message.data)).collect()
    }

    #[test]
    fn a_stream_is_the_same_wherever_it_is_cut() {
        let stream = "retry: 250\n\nid: 7\nevent: t\ndata: {\"a\":\ndata: \"ä\"}\n\n: heartbeat\n\nid:8\ndata:x\r\ndata\r\n\r\nevent: e\rdata:  y\r\rdata: never ended\n";
        let wanted = vec![
            (Some("7".to_string()), "t".to_string(), "{\"a\":\n\"ä\"}".to_string()),
            (Some("8".into()), "message".into(), "x\n".into()),
            (None, "e".into(), " y".into()),
        ];
        let bytes = stream.as_bytes();
        for at in 0..=bytes.len() {
            let mut parser = Parser::default();
            let (before, after) = bytes.split_at(at);
            assert_eq!(all(&mut parser, &[before, after]), wanted, "cut at {at}");
            assert_eq!(parser.retry_ms, Some(250));
        }
        let each: Vec<_> = bytes.chunks(1).collect();
        assert_eq!(all(&mut Parser::default(), &each), wanted);
    }

    #[test]
    fn what_is_no_event_of_a_stream_is_refused_or_passed_over() {
        assert_eq!(Parser::default().feed(b"data: \xff\n"), Err(SseError::NotText));
        let lines = b"id: 1\n\nevent: nothing\n\nunknown: x\ndata: y\nretry: soon\n\n";
        let found = all(&mut Parser::default(), &[lines]);
        assert_eq!(found, [(None, "message".to_string(), "y".to_string())]);
        let mut parser = Parser::default();
        let piece = [b'x'; 1 << 20];
        let fed = (0..49).map(|_| parser.feed(&piece)).find(Result::is_err);
        assert_eq!(fed, Some(Err(SseError::TooLong)));
    }
}
