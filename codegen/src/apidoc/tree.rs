//! The tree of nodes: which paths there are and which operations they have.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::errors::ApidocErrors;
use super::reader::{Mode, Reader, describe};
use super::{Apidoc, Method, Schema, Verb};

pub(super) fn read(value: &Value, source_name: &str, mode: Mode) -> Result<Apidoc, ApidocErrors> {
    let mut reader = Reader::new(mode);
    let mut tree = Tree::default();
    if let Some(nodes) = reader.list(value) {
        if nodes.is_empty() {
            reader.problem("holds no nodes");
        }
        tree.nodes(&mut reader, nodes, "");
    }
    if reader.problems.is_empty() {
        Ok(Apidoc { methods: tree.methods, paths: tree.paths, defects: reader.defects })
    } else {
        Err(ApidocErrors { source_name: source_name.to_owned(), places: reader.problems })
    }
}

#[derive(Default)]
struct Tree {
    methods: BTreeMap<String, Method>,
    paths: BTreeSet<String>,
    seen: BTreeSet<String>,
}

impl Tree {
    fn nodes(&mut self, reader: &mut Reader, nodes: &[Value], parent: &str) {
        for (index, node) in nodes.iter().enumerate() {
            // The node's own path names it best; without one, its position has to do.
            let name =
                node.get("path").and_then(Value::as_str).map_or_else(|| format!("{parent}/[{index}]"), str::to_owned);
            reader.within(name, |reader| self.node(reader, node, parent));
        }
    }

    fn node(&mut self, reader: &mut Reader, node: &Value, parent: &str) {
        let Some(node) = reader.object(node) else { return };
        let path = reader.required(node, "path").and_then(|value| reader.at("path", |reader| reader.text(value)));
        let text = reader.required(node, "text").and_then(|value| reader.at("text", |reader| reader.text(value)));
        let leaf = reader.required(node, "leaf").and_then(|value| reader.at("leaf", |reader| reader.flag(value)));
        let (Some(path), Some(text), Some(leaf)) = (path, text, leaf) else { return };
        if path != format!("{parent}/{text}") {
            reader.problem(format!("`path` is not that of its parent ({parent:?}) and `text` ({text:?})"));
        }
        if !self.seen.insert(path.clone()) {
            reader.problem("a second node with this path");
        }
        let has_children =
            node.get("children").is_some_and(|children| children.as_array().is_none_or(|list| !list.is_empty()));
        if leaf == has_children {
            reader.problem("`leaf` does not say whether there are `children`");
        }
        if !node.contains_key("info") && !has_children {
            reader.problem("has neither `info` nor `children`");
        }
        for (key, value) in node {
            match key.as_str() {
                "path" | "text" | "leaf" => {}
                "info" => reader.at("info", |reader| self.verbs(reader, value, &path)),
                "children" => {
                    if let Some(children) = reader.at("children", |reader| reader.list(value)) {
                        self.nodes(reader, children, &path);
                    }
                }
                _ => reader.unread(key, value, &[]),
            }
        }
    }

    fn verbs(&mut self, reader: &mut Reader, info: &Value, path: &str) {
        let Some(info) = reader.object(info) else { return };
        if info.is_empty() {
            reader.problem("holds no verb");
        }
        for (key, value) in info {
            let Some(verb) = Verb::parse(key) else {
                reader.problem(format!("unknown verb `{key}`"));
                continue;
            };
            let name = format!("{verb} {path}");
            if let Some(method) = reader.within(name.clone(), |reader| reader.method(verb, path, value)) {
                self.paths.insert(path.to_owned());
                self.methods.insert(name, method);
            }
        }
    }
}

impl Reader {
    fn method(&mut self, verb: Verb, path: &str, value: &Value) -> Option<Method> {
        let info = self.object(value)?;
        let name = self.required(info, "name").and_then(|value| self.at("name", |reader| reader.text(value)));
        let allow_token =
            self.required(info, "allowtoken").and_then(|value| self.at("allowtoken", |reader| reader.flag(value)));
        if self.required(info, "method").is_some_and(|method| method.as_str() != Some(verb.as_str())) {
            self.at("method", |reader| reader.problem(format!("is not {verb}")));
        }
        let parameters =
            self.required(info, "parameters").map(|value| self.at("parameters", |reader| reader.parameters(value)));
        let returns = self.required(info, "returns").map(|value| self.at("returns", |reader| reader.schema(value)));
        let permissions =
            info.get("permissions").and_then(|value| self.at("permissions", |reader| reader.permissions(value)));
        let protected = self.switch(info, "protected");
        let expose_credentials = self.switch(info, "expose_credentials");
        let download_allowed = self.switch(info, "download_allowed");
        let proxyto = info.get("proxyto");
        let proxyto =
            proxyto.and_then(|value| self.at("proxyto", |reader| reader.proxyto(value, path, parameters.as_ref())));
        for (key, value) in info {
            match key.as_str() {
                "name" | "allowtoken" | "method" | "parameters" | "returns" | "permissions" | "protected"
                | "expose_credentials" | "download_allowed" | "proxyto" => {}
                _ => self.unread(key, value, &["description"]),
            }
        }
        Some(Method {
            verb,
            path: path.to_owned(),
            name: name?,
            allow_token: allow_token?,
            protected,
            proxyto,
            expose_credentials,
            download_allowed,
            parameters: parameters?,
            returns: returns?,
            permissions,
        })
    }

    fn switch(&mut self, info: &Map<String, Value>, key: &str) -> bool {
        info.get(key).and_then(|value| self.at(key, |reader| reader.flag(value))).unwrap_or_default()
    }

    /// The parameter that names the node; null is Perl's way to say that there is none.
    fn proxyto(&mut self, value: &Value, path: &str, parameters: Option<&Schema>) -> Option<String> {
        match value {
            Value::Null => None,
            Value::String(name)
                if in_path(path, name) || parameters.is_some_and(|schema| schema.properties.contains_key(name)) =>
            {
                Some(name.clone())
            }
            other => {
                self.problem(format!("is {}, which is not a parameter", describe(other)));
                None
            }
        }
    }
}

fn in_path(path: &str, name: &str) -> bool {
    path.split('/').any(|step| step.strip_prefix('{').and_then(|step| step.strip_suffix('}')) == Some(name))
}
