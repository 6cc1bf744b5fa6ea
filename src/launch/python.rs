//! Values as Python writes them.

use std::fmt;

/// A value of Python.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// `None`.
    None,
    /// `True` or `False`.
    Bool(bool),
    /// A whole number.
    Int(u64),
    /// Hundredths below 1.
    Percent(u64),
    /// A string.
    Text(String),
    /// Anything else, as it is written.
    Code(&'static str),
    /// A list.
    List(Vec<Value>),
}

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        Self::Int(number)
    }
}

impl From<bool> for Value {
    fn from(flag: bool) -> Self {
        Self::Bool(flag)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("None"),
            Self::Bool(true) => f.write_str("True"),
            Self::Bool(false) => f.write_str("False"),
            Self::Int(number) => write!(f, "{number}"),
            Self::Percent(hundredths) => write!(f, "0.{hundredths:02}"),
            Self::Text(text) => write!(f, "{text:?}"),
            Self::Code(code) => f.write_str(code),
            Self::List(values) => {
                let values: Vec<String> = values.iter().map(ToString::to_string).collect();
                write!(f, "[{}]", values.join(", "))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_written_as_python_reads_them() {
        let list = Value::List(vec![1.into(), true.into(), "a\"b".into(), Value::None]);
        assert_eq!(list.to_string(), r#"[1, True, "a\"b", None]"#);
        assert_eq!(Value::Code("torch.bfloat16").to_string(), "torch.bfloat16");
    }
}
