//! TLS for the checks that want it.

use std::io::Read;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use realserver_agent::operators_file;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::stream::Stream;
use super::{Deadline, Outcome, trouble};
use crate::health::plan::Tls;

/// Bytes of a file of certificates at most.
const MOST: u64 = 1 << 20;

/// Speaks TLS over `stream` with a server of this host (`Host:` of HTTP, perhaps with a port). With
/// `tls.authority` its certificate must be signed by one of those and be for the name; without it **any
/// certificate passes**, expired, self-signed or another's: the check is whether the server works,
/// not whether somebody stands between.
pub(super) async fn open<S: Stream>(
    stream: S,
    tls: &Tls,
    host: &str,
    deadline: Deadline,
) -> Result<TlsStream<S>, Outcome> {
    let name = tls.name.as_deref().unwrap_or_else(|| without_port(host));
    let name = ServerName::try_from(name.to_owned()).map_err(|_| {
        Outcome::Unable(format!("{name:?} is neither a name nor an address that a certificate has"))
    })?;
    let config = match &tls.authority {
        Some(file) => Arc::new(verifying(file)?),
        None => trusting()?,
    };
    let opened = deadline.limit("TLS", TlsConnector::from(config).connect(name, stream)).await?;
    opened.map_err(|error| match is_own_authority(&error) {
        true => Outcome::Failed(
            "TLS: the certificate is its own authority: `authority` needs the one that has signed it"
                .to_owned(),
        ),
        false => trouble::outcome("TLS", &error),
    })
}

/// Whether a self-signed certificate of an authority is used as a server's.
fn is_own_authority(error: &std::io::Error) -> bool {
    error.to_string().contains("CaUsedAsEndEntity")
}

/// The host of a `Host:`, without port and brackets.
fn without_port(host: &str) -> &str {
    if let Some((address, _)) = host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        return address;
    }
    match host.rsplit_once(':') {
        Some((name, _)) if !name.contains(':') => name,
        _ => host,
    }
}

fn builder() -> Result<rustls::ConfigBuilder<ClientConfig, rustls::WantsVerifier>, Outcome> {
    ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| Outcome::Unable(format!("TLS: {error}")))
}

fn finished(mut config: ClientConfig) -> ClientConfig {
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    // Each check is to see a whole handshake.
    config.resumption = rustls::client::Resumption::disabled();
    config
}

/// Takes any certificate. Made once: it never changes.
fn trusting() -> Result<Arc<ClientConfig>, Outcome> {
    static CONFIG: OnceLock<Arc<ClientConfig>> = OnceLock::new();
    if let Some(config) = CONFIG.get() {
        return Ok(Arc::clone(config));
    }
    let anybody = Arc::new(Anybody(ring::default_provider()));
    let config = builder()?.dangerous().with_custom_certificate_verifier(anybody);
    let config = Arc::new(finished(config.with_no_client_auth()));
    Ok(Arc::clone(CONFIG.get_or_init(|| config)))
}

/// Takes certificates signed by those in the file, which is read each time: it may be renewed.
fn verifying(file: &Path) -> Result<ClientConfig, Outcome> {
    let unable = |why: &str| Outcome::Unable(format!("authority {}: {why}", file.display()));
    let unreadable = |error: std::io::Error| unable(&trouble::words(&error));
    let mut pem = Vec::new();
    let opened = operators_file::open(file).map_err(unreadable)?;
    opened.take(MOST).read_to_end(&mut pem).map_err(unreadable)?;
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&pem) {
        let certificate = certificate.map_err(|_| unable("not certificates in PEM form"))?;
        roots.add(certificate).map_err(|error| unable(&error.to_string()))?;
    }
    if roots.is_empty() {
        return Err(unable("no certificate in PEM form in it"));
    }
    Ok(finished(builder()?.with_root_certificates(roots).with_no_client_auth()))
}

/// A verifier to whom everybody is right.
#[derive(Debug)]
struct Anybody(CryptoProvider);

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests;
