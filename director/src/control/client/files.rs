//! Calls that are about other files for the director.

use super::Client;
use crate::control::ClientError;
use crate::control::plan::{
    ApplyRequest, FileApplied, Plan, PlanRequest, SettleRequest, Settled, Verdict,
};

impl Client {
    /// What would change if the director followed another file.
    ///
    /// # Errors
    /// See [`ClientError`]; so for the next two.
    pub fn plan(&mut self, request: &PlanRequest) -> Result<Plan, ClientError> {
        self.post("/v1/plan", request)
    }

    /// Has the director follow another file.
    ///
    /// # Errors
    /// See [`ClientError`]; nothing has changed when it is refused.
    pub fn follow(&mut self, request: &ApplyRequest) -> Result<FileApplied, ClientError> {
        self.agree()?;
        self.post("/v1/apply", request)
    }

    /// Confirms an applied file that waits for it, or has it reverted.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn settle(&mut self, verdict: Verdict) -> Result<Settled, ClientError> {
        self.post("/v1/settle", &SettleRequest { verdict })
    }
}
