//! Reads what people and their programs have written, and says in their words what is wrong with it: the key by its name, what
//! stands there, and what is expected instead. The readers of JSON and TOML speak of the types of this program; nobody who writes
//! a pairing knows those.

use std::fmt::{self, Display};

use crate::text::shortened;
use serde::Deserialize;
use serde::de::value::StrDeserializer;
use serde::de::{
    self, DeserializeSeed, Deserializer, Expected, IntoDeserializer, MapAccess, SeqAccess,
    Unexpected, Visitor,
};
use serde::forward_to_deserialize_any;
use serde_json::Value;

/// Reads a value of JSON.
pub fn read<'de, T: Deserialize<'de>>(value: &'de Value) -> Result<T, Complaint> {
    T::deserialize(Reader(value))
}

/// Reads a text as JSON of any kind; the error says where it is none.
pub fn json(text: &str) -> Result<Value, String> {
    let unique: Unique = serde_json::from_str(text).map_err(|error| not_json(&error))?;
    Ok(unique.0)
}

/// JSON in which no object has a key twice. Of two, readers take the one or the other (RFC 8259, section 4): nobody could say
/// which was meant.
struct Unique(Value);

impl<'de> Deserialize<'de> for Unique {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Unique, D::Error> {
        from.deserialize_any(UniqueVisitor).map(Unique)
    }
}

struct UniqueVisitor;

impl<'de> Visitor<'de> for UniqueVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(Unique(value)) = seq.next_element()? {
            list.push(value);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut object = serde_json::Map::new();
        while let Some(key) = map.next_key::<String>()? {
            if object.contains_key(&key) {
                return Err(de::Error::custom(format_args!(
                    "{:?}{TWICE}",
                    shortened(&key, MOST_SHOWN)
                )));
            }
            let Unique(value) = map.next_value()?;
            object.insert(key, value);
        }
        Ok(Value::Object(object))
    }
}

const TWICE: &str = " stands there twice";

/// Why a text is no JSON.
pub fn not_json(error: &serde_json::Error) -> String {
    use serde_json::error::Category;

    match error.classify() {
        Category::Eof => return "it ends before it is complete".to_owned(),
        Category::Data if error.to_string().contains(TWICE) => {}
        Category::Data | Category::Io => {
            return "an object in braces is expected, as {\"key\": \"value\"}".to_owned();
        }
        Category::Syntax => {}
    }
    let (line, column) = (error.line(), error.column());
    let said = error.to_string();
    let end = format!(" at line {line} column {column}");
    let what = match said.strip_suffix(end.as_str()).unwrap_or(&said) {
        "expected value" | "expected ident" => "a value is expected; text stands in double quotes",
        "key must be a string" => "a key in double quotes is expected",
        "trailing comma" => "there is a comma too many",
        "trailing characters" => "something follows after its end",
        "recursion limit exceeded" => "it is nested too deeply",
        other => other,
    };
    match line {
        ..=1 => format!("column {column}: {what}"),
        _ => format!("line {line}, column {column}: {what}"),
    }
}

/// What is wrong with a value, and where in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Complaint {
    /// The keys that lead there, the innermost first.
    path: Vec<String>,
    fault: Fault,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Fault {
    /// What stands there, and what is expected.
    Wrong(String, String),
    UnknownKey(String, &'static [&'static str]),
    Missing(&'static str),
    Other(String),
}

impl Complaint {
    fn new(fault: Fault) -> Complaint {
        Complaint {
            path: Vec::new(),
            fault,
        }
    }

    fn below(mut self, key: &str) -> Complaint {
        self.path.push(shortened(key, MOST_SHOWN));
        self
    }

    fn place(&self) -> String {
        let keys: Vec<&str> = self.path.iter().rev().map(String::as_str).collect();
        keys.join(".")
    }
}

impl Display for Complaint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = self.place();
        let place = match place.is_empty() {
            true => "it",
            false => &place,
        };
        match &self.fault {
            Fault::Wrong(found, expected) => {
                write!(f, "{place} is {found}; {expected} is expected")
            }
            Fault::UnknownKey(key, known) => {
                match self.path.is_empty() {
                    true => write!(f, "{key:?} is unknown")?,
                    false => write!(f, "{key:?} is unknown in {place}")?,
                }
                match known {
                    [] => f.write_str("; nothing is expected there"),
                    known => write!(f, "; {} is expected", either(known)),
                }
            }
            Fault::Missing(key) => match self.path.is_empty() {
                true => write!(f, "{key} is missing"),
                false => write!(f, "{place}.{key} is missing"),
            },
            Fault::Other(what) => match self.path.is_empty() {
                true => f.write_str(what),
                false => write!(f, "{place}: {what}"),
            },
        }
    }
}

impl std::error::Error for Complaint {}

impl de::Error for Complaint {
    fn custom<T: Display>(what: T) -> Complaint {
        Complaint::new(Fault::Other(what.to_string()))
    }

    fn invalid_type(found: Unexpected, expected: &dyn Expected) -> Complaint {
        let found = match found {
            Unexpected::Bool(value) => value.to_string(),
            Unexpected::Unsigned(number) => number.to_string(),
            Unexpected::Signed(number) => number.to_string(),
            // As it was written, also where that is 1e300.
            Unexpected::Float(number) => format!("{number:?}"),
            Unexpected::Str(text) => format!("{:?}", shortened(text, MOST_SHOWN)),
            Unexpected::Unit | Unexpected::Option => "null".to_owned(),
            Unexpected::Seq => "a list".to_owned(),
            Unexpected::Map => "an object".to_owned(),
            _ => "something else".to_owned(),
        };
        let expected = in_words_of_people(&expected.to_string());
        Complaint::new(Fault::Wrong(found, expected))
    }

    fn invalid_value(found: Unexpected, expected: &dyn Expected) -> Complaint {
        Complaint::invalid_type(found, expected)
    }

    fn unknown_variant(found: &str, known: &'static [&'static str]) -> Complaint {
        Complaint::new(Fault::Wrong(
            format!("{:?}", shortened(found, MOST_SHOWN)),
            either(known),
        ))
    }

    fn unknown_field(key: &str, known: &'static [&'static str]) -> Complaint {
        Complaint::new(Fault::UnknownKey(shortened(key, MOST_SHOWN), known))
    }

    fn missing_field(key: &'static str) -> Complaint {
        Complaint::new(Fault::Missing(key))
    }
}

/// A complaint of the TOML reader, which comes as a sentence about our types, with the place told apart from it.
///
/// Its sentences are those that `serde` gives to all readers; what is none of them is left as it is.
pub fn in_words(said: &str) -> String {
    let said = said.replace('\n', " ");
    match said.as_str() {
        "wanted string or table" => return "a word in double quotes is expected".to_owned(),
        "duplicate key" => return "this was given before".to_owned(),
        _ => {}
    }
    if let Some(key) = said.strip_prefix("missing field ") {
        return format!("{} is missing", key.replace('`', ""));
    }
    let Some((found, expected)) = said.split_once(", expected ") else {
        return said;
    };
    let words = || {
        let list = expected.strip_prefix("one of ").unwrap_or(expected);
        let list: Vec<&str> = list
            .split([',', '`'])
            .flat_map(|part| part.split(" or "))
            .map(str::trim)
            .filter(|word| !word.is_empty())
            .collect();
        either(&list)
    };
    if let Some(key) = found.strip_prefix("unknown field ") {
        let key = key.trim_matches('`');
        return format!("unknown key {key:?}; {} is expected", words());
    }
    if let Some(word) = found.strip_prefix("unknown variant ") {
        let word = word.trim_matches('`');
        return format!("{word:?} is given, but {} is expected", words());
    }
    let found = found
        .strip_prefix("invalid type: ")
        .or_else(|| found.strip_prefix("invalid value: "));
    let Some(found) = found else {
        return said;
    };
    let found = match found {
        "sequence" => "a list",
        "map" => "a table",
        // string "x", integer `5`, integer `99999999999999999999` as i128, floating point `1.5`, boolean `true`
        other => match (other.split('`').nth(1), other.find('"')) {
            (_, Some(at)) => &other[at..],
            (Some(quoted), None) => quoted,
            (None, None) => other,
        },
    };
    let expected = match expected {
        "a sequence" => "a list, or [[…]] around its name,".to_owned(),
        _ if expected.starts_with("struct ") || expected == "a map" => {
            "a section, as [its name] and lines below it,".to_owned()
        }
        other => in_words_of_people(other),
    };
    format!("{found} is given, but {expected} is expected")
}

/// What a reader expects, as it names our types.
fn in_words_of_people(expected: &str) -> String {
    let words = match expected {
        "u8" => "a whole number from 0 to 255",
        "u16" => "a whole number from 0 to 65535",
        "u32" => "a whole number from 0 to 4294967295",
        "u64" | "usize" => "a whole number, 0 or above,",
        "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number",
        "f32" | "f64" => "a number",
        "a boolean" => "true or false",
        "a string" | "a borrowed string" | "str" | "path string" | "a character" => {
            "text in double quotes"
        }
        "a sequence" => "a list in brackets",
        "unit" => "null",
        _ if expected.starts_with("struct ") || expected == "a map" => "an object in braces",
        other => other,
    };
    words.to_owned()
}

/// `a`, `a or b`, `a, b or c`.
pub fn either(words: &[&str]) -> String {
    match words {
        [] => "nothing".to_owned(),
        [only] => (*only).to_owned(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}

/// Characters of what was written; as many as help to find it.
const MOST_SHOWN: usize = 40;

/// A value on its way into one of our types. That of `serde_json` gives its errors no place, and they are sentences already.
struct Reader<'de>(&'de Value);

impl<'de> Deserializer<'de> for Reader<'de> {
    type Error = Complaint;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Complaint> {
        match self.0 {
            Value::Null => visitor.visit_unit(),
            Value::Bool(value) => visitor.visit_bool(*value),
            Value::Number(number) => {
                if let Some(number) = number.as_u64() {
                    visitor.visit_u64(number)
                } else if let Some(number) = number.as_i64() {
                    visitor.visit_i64(number)
                } else {
                    visitor.visit_f64(number.as_f64().unwrap_or(f64::NAN))
                }
            }
            Value::String(text) => visitor.visit_borrowed_str(text),
            Value::Array(values) => visitor.visit_seq(List {
                values: values.iter(),
                place: 0,
            }),
            Value::Object(object) => visitor.visit_map(Object {
                entries: object.iter(),
                entry: None,
            }),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Complaint> {
        match self.0 {
            Value::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Complaint> {
        visitor.visit_newtype_struct(self)
    }

    /// By names only: that the fields of a struct may also stand in a list without them is nothing to rely on.
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Complaint> {
        match self.0 {
            Value::Array(_) => Err(de::Error::invalid_type(Unexpected::Seq, &"a map")),
            _ => self.deserialize_any(visitor),
        }
    }

    /// Words; none of our types has variants that hold something and are named by a key.
    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        words: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Complaint> {
        match self.0 {
            Value::String(word) => {
                let word: StrDeserializer<Complaint> = word.as_str().into_deserializer();
                visitor.visit_enum(word)
            }
            other => Err(de::Error::invalid_type(
                kind(other),
                &either(words).as_str(),
            )),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map identifier ignored_any
    }
}

fn kind(value: &Value) -> Unexpected<'_> {
    match value {
        Value::Null => Unexpected::Unit,
        Value::Bool(value) => Unexpected::Bool(*value),
        Value::Number(number) => match (number.as_u64(), number.as_i64()) {
            (Some(number), _) => Unexpected::Unsigned(number),
            (None, Some(number)) => Unexpected::Signed(number),
            (None, None) => Unexpected::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Value::String(text) => Unexpected::Str(text),
        Value::Array(_) => Unexpected::Seq,
        Value::Object(_) => Unexpected::Map,
    }
}

struct List<'de> {
    values: std::slice::Iter<'de, Value>,
    place: usize,
}

impl<'de> SeqAccess<'de> for List<'de> {
    type Error = Complaint;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Complaint> {
        let Some(value) = self.values.next() else {
            return Ok(None);
        };
        self.place += 1;
        let read = seed.deserialize(Reader(value));
        read.map(Some)
            .map_err(|complaint| complaint.below(&self.place.to_string()))
    }
}

struct Object<'de> {
    entries: serde_json::map::Iter<'de>,
    entry: Option<(&'de str, &'de Value)>,
}

impl<'de> MapAccess<'de> for Object<'de> {
    type Error = Complaint;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Complaint> {
        let Some((key, value)) = self.entries.next() else {
            return Ok(None);
        };
        self.entry = Some((key, value));
        let key: StrDeserializer<Complaint> = key.as_str().into_deserializer();
        seed.deserialize(key).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Complaint> {
        let Some((key, value)) = self.entry.take() else {
            return Err(de::Error::custom("a value without its key"));
        };
        seed.deserialize(Reader(value))
            .map_err(|complaint| complaint.below(key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_read_whole_and_a_key_that_stands_twice_is_refused() {
        let text = r#"{"a":[1,-2,2.5,1e300,"x\n",null,true,{"b":18446744073709551615}],"b":{}}"#;
        assert_eq!(json(text), Ok(serde_json::from_str(text).unwrap()));
        for (text, said) in [
            (
                r#"{"table":"2","table":"1"}"#,
                "column 20: \"table\" stands there twice",
            ),
            (
                "{\"args\":\n{\"a\":1,\"a\":1}}",
                "line 2, column 10: \"a\" stands there twice",
            ),
            ("{\"a\":1,}", "column 8: there is a comma too many"),
        ] {
            assert_eq!(json(text).unwrap_err(), said);
        }
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only whether it is read counts")]
    struct Form {
        name: String,
        ply: Option<u32>,
        side: Option<Side>,
        #[serde(default)]
        rows: Vec<Row>,
        none: Option<Empty>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Side {
        White,
        Black,
    }

    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "only whether it is read counts")]
    struct Row {
        on: bool,
        part: f64,
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Empty {}

    #[test]
    fn what_is_right_is_read() {
        let text = r#"{"name":"x","ply":3,"side":"black","rows":[{"on":true,"part":1,"more":[]}],"none":{}}"#;
        let value = json(text).unwrap();
        let form: Form = read(&value).unwrap();
        assert_eq!((form.ply, form.rows[0].part), (Some(3), 1.0));
        assert!(matches!(form.side, Some(Side::Black)));
        let value = json(r#"{"name":"x","ply":null,"side":null}"#).unwrap();
        assert!(read::<Form>(&value).is_ok());
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, says) in [
            ("5", "it is 5; an object in braces is expected"),
            (r#"["x"]"#, "it is a list; an object in braces is expected"),
            ("null", "it is null; an object in braces is expected"),
            ("{}", "name is missing"),
            (
                r#"{"name":1}"#,
                "name is 1; text in double quotes is expected",
            ),
            (
                r#"{"name":"x","ply":-1}"#,
                "ply is -1; a whole number from 0 to 4294967295 is expected",
            ),
            (
                r#"{"name":"x","ply":1.5}"#,
                "ply is 1.5; a whole number from 0 to 4294967295 is expected",
            ),
            (
                r#"{"name":"x","ply":99999999999999999999}"#,
                "ply is 1e20; a whole number from 0 to 4294967295 is expected",
            ),
            (
                r#"{"name":"x","side":"White"}"#,
                "side is \"White\"; white or black is expected",
            ),
            (
                r#"{"name":"x","side":[]}"#,
                "side is a list; white or black is expected",
            ),
            (
                r#"{"name":"x","rows":[{"on":true,"part":1},{"on":1}]}"#,
                "rows.2.on is 1; true or false is expected",
            ),
            (
                r#"{"name":"x","rows":[{"on":true}]}"#,
                "rows.1.part is missing",
            ),
            (
                r#"{"name":"x","rows":{}}"#,
                "rows is an object; a list in brackets is expected",
            ),
            (
                r#"{"name":"x","plie":1}"#,
                "\"plie\" is unknown; name, ply, side, rows or none is expected",
            ),
            (
                r#"{"name":"x","none":{"a\nb":1}}"#,
                "\"a\\nb\" is unknown in none; nothing is expected there",
            ),
        ] {
            let value = json(text).unwrap();
            let complaint = read::<Form>(&value).unwrap_err();
            assert_eq!(complaint.to_string(), says, "{text}");
        }
        let long = format!("{{\"name\":\"x\",\"side\":\"{}\"}}", "é".repeat(5000));
        let complaint = read::<Form>(&json(&long).unwrap()).unwrap_err().to_string();
        assert!(complaint.chars().count() < 120, "{complaint}");
    }

    #[test]
    fn what_is_no_json_is_told_by_its_place() {
        for (text, says) in [
            ("", "it ends before it is complete"),
            ("{\"a\":1", "it ends before it is complete"),
            (
                "Anna",
                "column 1: a value is expected; text stands in double quotes",
            ),
            ("{a:1}", "column 2: a key in double quotes is expected"),
            ("{\"a\":1,}", "column 8: there is a comma too many"),
            (
                "{\n\"a\":1} x",
                "line 2, column 8: something follows after its end",
            ),
        ] {
            assert_eq!(json(text).unwrap_err(), says, "{text}");
        }
        let deep = "[".repeat(1000);
        assert!(json(&deep).unwrap_err().contains("nested too deeply"));
    }

    #[test]
    fn the_words_of_the_toml_reader_are_put_into_ours() {
        for (said, says) in [
            ("missing field `name`", "name is missing"),
            (
                "unknown field `x`, expected one of `a`, `b`, `c`",
                "unknown key \"x\"; a, b or c is expected",
            ),
            (
                "unknown field `x`, expected `a` or `b`",
                "unknown key \"x\"; a or b is expected",
            ),
            (
                "unknown variant `x`, expected one of `auto`, `normal`",
                "\"x\" is given, but auto or normal is expected",
            ),
            (
                "invalid type: string \"x\", expected a boolean",
                "\"x\" is given, but true or false is expected",
            ),
            (
                "invalid value: integer `-1`, expected u32",
                "-1 is given, but a whole number from 0 to 4294967295 is expected",
            ),
            (
                "invalid type: sequence, expected a string",
                "a list is given, but text in double quotes is expected",
            ),
            (
                "invalid type: integer `99999999999999999999` as i128, expected u32",
                "99999999999999999999 is given, but a whole number from 0 to 4294967295 is expected",
            ),
            (
                "invalid type: string \"a`b\", expected a boolean",
                "\"a`b\" is given, but true or false is expected",
            ),
            ("duplicate key", "this was given before"),
            (
                "expected newline, expected `#`",
                "expected newline, expected `#`",
            ),
        ] {
            assert_eq!(in_words(said), says);
        }
    }
}
