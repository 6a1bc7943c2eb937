//! Headers that may be there once. Of two, the first would count silently, and a proxy before the server may go by the other.

use axum::http::HeaderMap;

use crate::problem::Problem;

/// The value of a header that is given at most once.
pub(crate) fn one<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a str>, Problem> {
    let mut values = headers.get_all(name).iter();
    let (value, None) = (values.next(), values.next()) else {
        return Err(Problem::bad(format!("the header `{name}` is given twice: give it once")));
    };
    let Some(value) = value else { return Ok(None) };
    let text =
        value.to_str().map_err(|_| Problem::bad(format!("the header `{name}` is no visible ASCII")))?;
    Ok(Some(text))
}
