//! A plain HTTPS client that trusts the lab's CA and nothing else.

use std::time::Duration;

use hyper::ext::ReasonPhrase;
use lab::{Lab, Options, SampleRead};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::{Certificate, Client, Method};
use serde_json::Value;

/// An answer, taken apart.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) status: u16,
    pub(crate) reason: String,
    pub(crate) content_type: Option<String>,
    pub(crate) connection: Option<String>,
    pub(crate) text: String,
}

impl Seen {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_default()
    }

    pub(crate) fn data(&self) -> Value {
        self.json()["data"].clone()
    }

    pub(crate) fn rows(&self) -> Vec<Value> {
        self.data().as_array().cloned().unwrap_or_default()
    }

    pub(crate) fn error(&self, parameter: &str) -> String {
        self.json()["errors"][parameter].as_str().unwrap_or_default().to_owned()
    }
}

/// A started lab and a client for it.
pub(crate) struct Bench {
    pub(crate) lab: Lab,
    pub(crate) client: Client,
}

pub(crate) fn quick() -> Options {
    Options { latency: false, task_tick: Duration::from_millis(5), ..Options::default() }
}

pub(crate) fn client(lab: &Lab) -> Client {
    // Several tests may come here; the first one decides, and all decide alike.
    let _installed = rustls::crypto::ring::default_provider().install_default();
    Client::builder()
        .tls_certs_only([Certificate::from_pem(lab.ca_pem().as_bytes()).unwrap()])
        .no_proxy()
        .build()
        .unwrap()
}

impl Bench {
    pub(crate) async fn start(options: Options) -> Self {
        let lab = Lab::start(options).await.unwrap();
        let client = client(&lab);
        Self { lab, client }
    }

    pub(crate) async fn quick() -> Self {
        Self::start(quick()).await
    }

    /// Sends with the token that has all rights.
    pub(crate) async fn send(&self, method: &str, path: &str, form: Option<&str>) -> Seen {
        self.send_as(&self.lab.full_token(), method, path, form).await
    }

    pub(crate) async fn get(&self, path: &str) -> Seen {
        self.send("GET", path, None).await
    }

    pub(crate) async fn send_as(&self, token: &str, method: &str, path: &str, form: Option<&str>) -> Seen {
        self.try_send(&self.lab.url(), token, method, path, form).await.unwrap()
    }

    /// The same, where no answer may come.
    pub(crate) async fn attempt(&self, method: &str, path: &str, form: Option<&str>) -> reqwest::Result<Seen> {
        self.try_send(&self.lab.url(), &self.lab.full_token(), method, path, form).await
    }

    /// Asks a node by its number through its own listener.
    pub(crate) async fn ask(&self, node: usize, path: &str) -> reqwest::Result<Seen> {
        self.try_send(&self.lab.endpoints()[node - 1].url, &self.lab.full_token(), "GET", path, None).await
    }

    async fn try_send(
        &self,
        base: &str,
        token: &str,
        method: &str,
        path: &str,
        form: Option<&str>,
    ) -> reqwest::Result<Seen> {
        let mut request = self
            .client
            .request(Method::from_bytes(method.as_bytes()).unwrap(), format!("{base}/api2/json{path}"))
            .header("Authorization", format!("PVEAPIToken={token}"));
        if let Some(form) = form {
            request = request.header("Content-Type", "application/x-www-form-urlencoded").body(form.to_owned());
        }
        Ok(take_apart(request.send().await?).await)
    }

    pub(crate) async fn sample(&self, sample: &SampleRead) -> Seen {
        self.get(&url(sample)).await
    }
}

pub(crate) async fn take_apart(response: reqwest::Response) -> Seen {
    let header = |name: &str| {
        let value = response.headers().get(name)?;
        Some(value.to_str().unwrap().to_owned())
    };
    let (content_type, connection) = (header("content-type"), header("connection"));
    let reason = response.extensions().get::<ReasonPhrase>().map_or_else(
        || response.status().canonical_reason().unwrap_or_default().to_owned(),
        |reason| String::from_utf8_lossy(reason.as_bytes()).into_owned(),
    );
    Seen { status: response.status().as_u16(), reason, content_type, connection, text: response.text().await.unwrap() }
}

/// The path and query of a sample read.
pub(crate) fn url(sample: &SampleRead) -> String {
    let mut path = sample.operation.trim_start_matches("GET ").to_owned();
    let mut query = Vec::new();
    for (name, value) in &sample.arguments {
        let value = utf8_percent_encode(value, NON_ALPHANUMERIC).to_string();
        let place = format!("{{{name}}}");
        if path.contains(&place) {
            path = path.replace(&place, &value);
        } else {
            query.push(format!("{name}={value}"));
        }
    }
    if query.is_empty() { path } else { format!("{path}?{}", query.join("&")) }
}
