//! The language as a JSON schema, for editors.

use serde_json::{Map, Value, json};
use warploom_kernels::op;

use super::field::{BRANCH_AXES, Field, ITEM, PIPELINE, Takes, WORK};

/// The schema of pipeline files, made from the list of fields and the catalogue.
pub fn schema() -> Value {
    let mut root = object(PIPELINE, false);
    root["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    root["title"] = json!("Warploom pipeline");
    let ops: Vec<&str> = op::ops().map(|op| op.name).collect();
    root["$defs"] = json!({
        "op": { "enum": ops },
        "argument": { "anyOf": [
            { "type": ["number", "string", "boolean", "array"] },
            { "type": "object", "properties": { "from": { "type": "string" }, "item": { "type": ["string", "integer"] } },
              "required": ["from", "item"], "additionalProperties": false }
        ]},
        "chain": { "type": "array", "items": { "anyOf": [
            { "$ref": "#/$defs/op" },
            object(ITEM, true)
        ]}},
    });
    root
}

fn object(fields: &[Field], open: bool) -> Value {
    let mut properties = Map::new();
    for field in fields {
        let mut value = takes(field);
        value["description"] = json!(field.doc);
        properties.insert(field.name.to_owned(), value);
    }
    let needed: Vec<&str> = fields.iter().filter(|f| f.needed).map(|f| f.name).collect();
    let others = if open {
        json!({ "$ref": "#/$defs/argument" })
    } else {
        json!(false)
    };
    json!({ "type": "object", "properties": properties, "required": needed, "additionalProperties": others })
}

fn takes(field: &Field) -> Value {
    match field.takes {
        Takes::Text if field.name == "op" => json!({ "$ref": "#/$defs/op" }),
        Takes::Text => json!({ "type": ["string", "integer"] }),
        Takes::Flag => json!({ "type": "boolean" }),
        Takes::Word(words) => json!({ "enum": words }),
        Takes::DType(words) => {
            let types = op::PIXELS.iter().map(ToString::to_string);
            let words = words.iter().map(ToString::to_string).chain(types);
            json!({ "enum": words.collect::<Vec<_>>() })
        }
        Takes::Names => json!({ "anyOf": [
            { "type": "string" }, { "type": "array", "items": { "type": "string" } }
        ]}),
        Takes::Chain => json!({ "$ref": "#/$defs/chain" }),
        Takes::Params => {
            json!({ "type": "object", "additionalProperties": { "$ref": "#/$defs/argument" } })
        }
        Takes::Texts => json!({ "type": "object", "additionalProperties": { "type": "string" } }),
        Takes::Table(fields) => object(fields, false),
        Takes::Tables(fields) => {
            json!({ "type": "object", "additionalProperties": object(fields, false) })
        }
        Takes::List(fields) => {
            // The other fields of a step are its operation's parameters.
            let works = WORK
                .iter()
                .all(|work| fields.iter().any(|field| field.name == *work));
            let mut item = object(fields, works);
            if works {
                item["oneOf"] = WORK
                    .iter()
                    .map(|work| json!({ "required": [work] }))
                    .collect();
            }
            json!({ "type": "array", "items": item })
        }
        Takes::Branch => json!({
            "type": "object", "properties": { "by": { "enum": BRANCH_AXES } }, "required": ["by"],
            "additionalProperties": { "$ref": "#/$defs/chain" }
        }),
    }
}
