//! How nodes are reached: the one that runs here over its control socket, others through it, or any
//! of them over the network with the cluster's key.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use director::control::ClientError;
use director::control::client::Client;
use director::control::nlb::{NlbReply, NlbRequest, NlbView};
use director::control::remote::Controller;
use nlb::control::PORT;
use nlb::key::ClusterKey;

/// See the module.
#[derive(Debug)]
pub enum Way {
    /// The control socket here.
    Socket(PathBuf),
    /// The network.
    Network {
        /// Who commands.
        controller: Controller,
        /// The cluster's primary address, or a host's.
        to: SocketAddr,
    },
}

/// Why there is no answer.
#[derive(Debug)]
pub enum NoAnswer {
    /// Of the control socket.
    Client(ClientError),
    /// Of the network.
    Network(IpAddr, io::Error),
    /// The node that runs here belongs to another cluster.
    OtherCluster {
        /// The one that was named.
        named: IpAddr,
        /// Its own.
        own: String,
    },
    /// The key cannot be used.
    Key(PathBuf, String),
}

impl fmt::Display for NoAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoAnswer::Client(error) => error.fmt(f),
            NoAnswer::OtherCluster { named, own } => write!(
                f,
                "the cluster of this host is {own}, not {named}: /KEYFILE FILE asks another one over \
                 the network"
            ),
            NoAnswer::Network(to, error) => write!(f, "cannot ask {to}: {error}"),
            NoAnswer::Key(path, problem) => write!(f, "key file {}: {problem}", path.display()),
        }
    }
}

impl Way {
    /// Over the network, with the key of a file.
    ///
    /// # Errors
    /// When the key cannot be read, or there is no socket.
    pub fn over_network(to: IpAddr, key: &Path) -> Result<Way, NoAnswer> {
        let wrong = |problem: String| NoAnswer::Key(key.to_owned(), problem);
        let bytes =
            realserver_agent::key_file::bytes(key).map_err(|error| wrong(error.to_string()))?;
        // As the node reads it: without the end of the line.
        let secret = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
        let secret = ClusterKey::new(secret).map_err(|error| wrong(error.to_string()))?;
        let controller = Controller::new(secret.control().clone(), to)
            .map_err(|error| NoAnswer::Network(to, error))?;
        Ok(Way::Network { controller, to: SocketAddr::new(to, PORT) })
    }

    /// Makes sure that the node that runs here is one of the cluster that was named.
    ///
    /// # Errors
    /// When it is not, or does not answer.
    pub fn is_of(&self, cluster: IpAddr) -> Result<(), NoAnswer> {
        let reply = self.ask(&NlbRequest::default())?;
        let own = reply.answers.first().and_then(|answer| match answer.view.as_deref() {
            Some(NlbView::Query(view)) => Some(view.cluster.clone()),
            _ => None,
        });
        match own {
            Some(own) if own != cluster.to_string() => {
                Err(NoAnswer::OtherCluster { named: cluster, own })
            }
            _ => Ok(()),
        }
    }

    /// Asks, and gathers answers. Over the network nobody to ask is an error.
    ///
    /// # Errors
    /// When there is no way.
    pub fn ask(&self, request: &NlbRequest) -> Result<NlbReply, NoAnswer> {
        match self {
            Way::Socket(path) => Client::connect(path)
                .and_then(|mut client| client.nlb(request))
                .map_err(NoAnswer::Client),
            Way::Network { controller, to } => {
                let failed = |error| NoAnswer::Network(to.ip(), error);
                // Whom nobody names is meant by the address: all behind the cluster's.
                let word = request.hosts.as_deref().unwrap_or("all");
                let hosts = controller.find(&[*to], word).map_err(failed)?;
                let reply = controller.ask(&[*to], &hosts, &request.command).map_err(failed)?;
                if reply.answers.is_empty() {
                    return Err(failed(io::Error::other(
                        "no node answers: is the key that of the cluster, has remote_control been \
                         switched off, is this machine on the cluster's segment?",
                    )));
                }
                Ok(reply)
            }
        }
    }
}
