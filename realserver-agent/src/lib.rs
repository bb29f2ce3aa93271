//! realserver-agent
