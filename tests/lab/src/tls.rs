//! The lab's own CA and the certificates of its nodes. Made anew at every start; nothing is trusted beyond it.

use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, crypto::ring};
use sha2::{Digest, Sha256};

use crate::lab::LabError;
use crate::options::Certificate;
use crate::state::hex;

/// Who signs the nodes' certificates.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pub(crate) pem: String,
}

/// What a node's listener needs, and what a client has to know.
pub(crate) struct Identity {
    pub(crate) server: Arc<ServerConfig>,
    /// Of the leaf, as PVE prints it: SHA-256 in upper-case hex with colons.
    pub(crate) fingerprint: String,
}

fn tls(what: &str, error: &dyn std::fmt::Display) -> LabError {
    LabError::Tls(format!("{what}: {error}"))
}

/// Makes a CA.
pub(crate) fn authority() -> Result<Authority, LabError> {
    let mut ca = CertificateParams::default();
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    ca.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    ca.distinguished_name.push(DnType::CommonName, "Lab CA");
    let ca_key = KeyPair::generate().map_err(|error| tls("generate the CA's key", &error))?;
    let pem = ca.self_signed(&ca_key).map_err(|error| tls("sign the CA", &error))?.pem();
    Ok(Authority { issuer: Issuer::new(ca, ca_key), pem })
}

/// Makes a certificate for a node.
pub(crate) fn identity(authority: &Authority, node: &str, certificate: Certificate) -> Result<Identity, LabError> {
    let names = match certificate {
        Certificate::Fit => vec!["localhost".to_owned(), "127.0.0.1".to_owned(), node.to_owned()],
        Certificate::WrongName => vec!["elsewhere.lab.test".to_owned()],
    };
    let mut leaf = CertificateParams::new(names).map_err(|error| tls("name the listener", &error))?;
    leaf.distinguished_name.push(DnType::CommonName, node);
    let leaf_key = KeyPair::generate().map_err(|error| tls("generate the listener's key", &error))?;
    let leaf =
        leaf.signed_by(&leaf_key, &authority.issuer).map_err(|error| tls("sign the listener's certificate", &error))?;

    let fingerprint = Sha256::digest(leaf.der()).iter().map(|byte| format!("{byte:02X}")).collect::<Vec<_>>().join(":");
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(leaf_key.serialize_der()));
    let server = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| tls("choose protocol versions", &error))?
        .with_no_client_auth()
        .with_single_cert(vec![leaf.der().clone()], key)
        .map_err(|error| tls("load the listener's certificate", &error))?;
    Ok(Identity { server: Arc::new(server), fingerprint })
}

/// A random secret in the form of PVE's token secrets, a UUID.
pub(crate) fn random_secret() -> Result<String, LabError> {
    let mut bytes = [0_u8; 16];
    ring::default_provider()
        .secure_random
        .fill(&mut bytes)
        .map_err(|_| LabError::Tls("no randomness from the system".to_owned()))?;
    let hex = hex(&bytes);
    let parts: Vec<&str> =
        [(0, 8), (8, 12), (12, 16), (16, 20), (20, 32)].iter().filter_map(|(from, to)| hex.get(*from..*to)).collect();
    Ok(parts.join("-"))
}
