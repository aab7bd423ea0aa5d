//! Standard output: what is said stays, what is shown is drawn over in place. Without a terminal everything stays.

use std::io::{self, IsTerminal as _, Write};
use std::sync::{Arc, Mutex, PoisonError};

/// Wrapping off: a line that is too long for the window is cut, so that it stays one line.
const WRAP_OFF: &str = "\x1b[?7l";
const WRAP_ON: &str = "\x1b[?7h";
/// From the cursor to the end of the window.
const ERASE_BELOW: &str = "\x1b[J";

/// Where the demo writes. An output that is closed (by `head`, say) is no reason to end.
pub(super) struct Screen {
    out: Box<dyn Write + Send>,
    draws_in_place: bool,
    /// Lines of the block above the cursor that will be drawn over.
    lines_shown: usize,
}

impl Screen {
    pub(super) fn of_stdout() -> Self {
        let is_dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        Self::new(Box::new(io::stdout()), io::stdout().is_terminal() && !is_dumb)
    }

    fn new(out: Box<dyn Write + Send>, draws_in_place: bool) -> Self {
        Self { out, draws_in_place, lines_shown: 0 }
    }

    /// Writes something that stays. The block comes again below it when it is next shown.
    pub(super) fn say(&mut self, text: &str) {
        self.erase();
        self.write(&format!("{text}\n"));
    }

    /// Shows the block in the place of the last one; without a terminal, the line.
    pub(super) fn show(&mut self, block: &[String], line: &str) {
        if !self.draws_in_place {
            return self.write(&format!("{line}\n"));
        }
        self.erase();
        self.write(&format!("{WRAP_OFF}{}\n{WRAP_ON}", block.join("\n")));
        self.lines_shown = block.len();
    }

    /// What is shown stays.
    pub(super) fn keep(&mut self) {
        self.lines_shown = 0;
    }

    /// Makes room for what others write to the terminal.
    fn erase(&mut self) {
        if self.lines_shown > 0 {
            self.write(&format!("\r\x1b[{}A{ERASE_BELOW}", self.lines_shown));
            self.lines_shown = 0;
        }
    }

    fn write(&mut self, text: &str) {
        let _closed_output = self.out.write_all(text.as_bytes()).and_then(|()| self.out.flush());
    }
}

/// Log lines go to standard error, above the block.
pub(super) struct LogWriter {
    screen: Arc<Mutex<Screen>>,
}

impl LogWriter {
    pub(super) fn new(screen: Arc<Mutex<Screen>>) -> Self {
        Self { screen }
    }
}

impl Write for LogWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut screen = self.screen.lock().unwrap_or_else(PoisonError::into_inner);
        if io::stderr().is_terminal() {
            screen.erase();
        }
        io::stderr().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Default)]
    struct Paper(Arc<Mutex<Vec<u8>>>);

    impl Write for Paper {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn check(draws_in_place: bool, expected: &str) {
        let paper = Paper::default();
        let mut screen = Screen::new(Box::new(paper.clone()), draws_in_place);
        let block = |text: &str| [format!("{text} 1"), format!("{text} 2")];
        screen.say("hello");
        screen.show(&block("a"), "line a");
        screen.show(&block("b"), "line b");
        screen.say("said");
        screen.show(&block("c"), "line c");
        screen.keep();
        screen.say("end");
        assert_eq!(String::from_utf8(paper.0.lock().unwrap().clone()).unwrap(), expected);
    }

    #[test]
    fn a_block_is_drawn_over_in_place() {
        check(
            true,
            "hello\n\x1b[?7la 1\na 2\n\x1b[?7h\r\x1b[2A\x1b[J\x1b[?7lb 1\nb 2\n\x1b[?7h\r\x1b[2A\x1b[Jsaid\n\
             \x1b[?7lc 1\nc 2\n\x1b[?7hend\n",
        );
    }

    #[test]
    fn without_a_terminal_there_are_plain_lines() {
        check(false, "hello\nline a\nline b\nsaid\nline c\nend\n");
    }
}
