//! What differs between two values that can be written as JSON, name by name: no field that is added
//! to one of them can be forgotten here.

use serde::Serialize;
use serde_json::Value;

use crate::control::plan::FieldChange;

/// The fields that differ, by name. Either may be missing altogether. Fields of `skip` are left out.
pub(super) fn differ<T: Serialize>(
    old: Option<&T>,
    new: Option<&T>,
    skip: &[&str],
) -> Vec<FieldChange> {
    let mut fields = Vec::new();
    compare("", &value(old), &value(new), &mut fields);
    fields.retain(|change| !skip.contains(&change.field.as_str()));
    fields
}

/// One that differs, or `None`.
pub(super) fn one(field: &str, old: String, new: String) -> Option<FieldChange> {
    (old != new).then(|| FieldChange { field: field.to_owned(), old, new })
}

fn value<T: Serialize>(of: Option<&T>) -> Value {
    // Our types have string keys and finite numbers only: each can be written.
    serde_json::to_value(of).unwrap_or_default()
}

fn compare(name: &str, old: &Value, new: &Value, fields: &mut Vec<FieldChange>) {
    if old == new {
        return;
    }
    let empty = serde_json::Map::new();
    let (old_map, new_map) = match (old, new) {
        (Value::Object(old), Value::Object(new)) => (old, new),
        (Value::Object(old), Value::Null) => (old, &empty),
        (Value::Null, Value::Object(new)) => (&empty, new),
        _ => {
            fields.extend(one(name, shown(old), shown(new)));
            return;
        }
    };
    let added = new_map.keys().filter(|key| !old_map.contains_key(*key));
    for key in old_map.keys().chain(added) {
        // `extras` is a word of the API: the file has its fields beside the others.
        let path = match name {
            "" | "extras" => key.clone(),
            name => format!("{name}.{key}"),
        };
        let at = |map: &serde_json::Map<String, Value>| map.get(key).cloned().unwrap_or_default();
        compare(&path, &at(old_map), &at(new_map), fields);
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_differs_is_named_by_its_path_and_what_is_missing_is_empty() {
        let old = json!({"a": 1, "extras": {"bias": "none"}, "persistence": {"timeout": 5}});
        let new = json!({"a": 1, "extras": {"bias": "ilb:2"}, "b": true});
        let fields = differ(Some(&old), Some(&new), &[]);
        let told: Vec<_> =
            fields.iter().map(|it| (it.field.as_str(), it.old.as_str(), it.new.as_str())).collect();
        let expected =
            [("bias", "none", "ilb:2"), ("persistence.timeout", "5", ""), ("b", "", "true")];
        assert_eq!(told, expected);
        assert_eq!(differ(Some(&old), Some(&old), &[]), []);
    }
}
