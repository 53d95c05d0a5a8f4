//! A certificate for a server that a test runs on 127.0.0.1, signed by a CA that is made for it.

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};

/// The certificate, its key, and who signed it.
#[derive(Debug)]
pub struct Certificate {
    /// The CA's certificate in PEM.
    pub authority_pem: String,
    /// The server's own.
    pub leaf: rcgen::Certificate,
    /// Its key.
    pub key: KeyPair,
}

impl Certificate {
    /// Makes a new one.
    pub fn generate() -> Self {
        let mut authority = CertificateParams::default();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        authority.distinguished_name.push(DnType::CommonName, "CA of the test");
        let authority_key = KeyPair::generate().unwrap();
        let authority_pem = authority.self_signed(&authority_key).unwrap().pem();
        let mut leaf = CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
        // Newer Pythons do not trust a certificate that does not say whose it is.
        leaf.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate().unwrap();
        let leaf = leaf.signed_by(&key, &Issuer::new(authority, authority_key)).unwrap();
        Self { authority_pem, leaf, key }
    }
}
