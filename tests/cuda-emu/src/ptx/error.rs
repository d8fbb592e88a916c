//! Why a text is refused.

/// A text that is not PTX, or asks for something that would not be executed faithfully.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("PTX line {line}: {message}")]
pub struct PtxError {
    /// Line of the text, counted from one.
    pub line: u32,
    /// What is wrong there, or not supported.
    pub message: String,
}

impl PtxError {
    pub(crate) fn new(line: u32, message: impl Into<String>) -> Self {
        Self {
            line,
            message: message.into(),
        }
    }

    /// The same complaint about another line.
    pub(crate) fn at(self, line: u32) -> Self {
        Self { line, ..self }
    }
}
