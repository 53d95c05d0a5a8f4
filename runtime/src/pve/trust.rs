//! Decides which certificate is the cluster's: one signed by the configured CA, one with the configured
//! fingerprint, or both. Public roots never count, and no setting skips the check.

use crate::config::Trust;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use sha2::{Digest as _, Sha256};
use std::sync::Arc;
use subtle::ConstantTimeEq as _;

/// TLS settings for one cluster; the error is a sentence for the operator.
pub(super) fn client_config(trust: &Trust) -> Result<ClientConfig, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = Verifier::new(trust, Arc::clone(&provider))?;
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("TLS cannot be set up: {error}"))?
        // rustls calls every verifier of one's own dangerous; this one only narrows what is accepted.
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    Ok(config)
}

#[derive(Debug)]
struct Verifier {
    ca: Option<Arc<WebPkiServerVerifier>>,
    fingerprints: Vec<[u8; 32]>,
    name: Option<ServerName<'static>>,
    provider: Arc<CryptoProvider>,
}

impl Verifier {
    fn new(trust: &Trust, provider: Arc<CryptoProvider>) -> Result<Self, String> {
        let ca = trust.ca_pem.as_deref().map(|pem| roots(pem, &provider)).transpose()?;
        if ca.is_none() && trust.fingerprints.is_empty() {
            return Err("neither a CA nor a fingerprint is configured".to_owned());
        }
        Ok(Self { ca, fingerprints: trust.fingerprints.clone(), name: trust.server_name.clone(), provider })
    }
}

fn roots(pem: &[u8], provider: &Arc<CryptoProvider>) -> Result<Arc<WebPkiServerVerifier>, String> {
    let mut store = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        let certificate = certificate.map_err(|error| format!("the CA file is not PEM: {error}"))?;
        store
            .add(certificate)
            .map_err(|error| format!("the CA file holds a certificate that cannot be used: {error}"))?;
    }
    if store.is_empty() {
        return Err("the CA file holds no certificate".to_owned());
    }
    WebPkiServerVerifier::builder_with_provider(Arc::new(store), Arc::clone(provider))
        .build()
        .map_err(|error| format!("the CA file cannot be used: {error}"))
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        leaf: &CertificateDer<'_>,
        chain: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if !self.fingerprints.is_empty() {
            let presented: [u8; 32] = Sha256::digest(leaf.as_ref()).into();
            if !self.fingerprints.iter().any(|known| bool::from(known.ct_eq(&presented))) {
                return Err(CertificateError::ApplicationVerificationFailure.into());
            }
        }
        match &self.ca {
            Some(ca) => ca.verify_server_cert(leaf, chain, self.name.as_ref().unwrap_or(name), ocsp, now),
            // The fingerprint names this one certificate; the handshake's signature proves its key.
            None => Ok(ServerCertVerified::assertion()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// What is wrong with a certificate, in words; `None` for other failures.
pub(super) fn complaint(error: &(dyn std::error::Error + 'static)) -> Option<String> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(tls) = error.downcast_ref::<Error>() {
            return words(tls);
        }
        // `io::Error` skips the error inside when asked for its source, and several are nested here.
        next = match error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref) {
            Some(inner) => Some(inner),
            None => error.source(),
        };
    }
    None
}

fn words(error: &Error) -> Option<String> {
    let Error::InvalidCertificate(problem) = error else { return None };
    Some(match problem {
        CertificateError::ApplicationVerificationFailure => {
            "its certificate does not have the configured fingerprint".to_owned()
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "its certificate is for another name; set server_name to one that it holds".to_owned()
        }
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            "its certificate is not signed by the configured CA".to_owned()
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => "its certificate has expired".to_owned(),
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "its certificate is not valid yet; compare the clocks".to_owned()
        }
        other => format!("its certificate is refused: {other}"),
    })
}
