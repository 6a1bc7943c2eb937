//! Opening for writing: the loop that performs what recovery asks for.

use strandline_core::{
    Answer, Config, Effect, Framing, Journal, Listing, ReadRequest, Recovery, RecoveryError, RecoveryStep,
    Report,
};

use crate::disk::Disk;
use crate::perform::Performer;

/// Recovers a journal from its files, or creates it where there are none. The first effects of the journal
/// that results are to be performed by the same performer.
///
/// # Errors
/// [`RecoveryError`]: the journal is damaged, and nothing was changed, or the disk failed.
pub fn recover<F: Framing, D: Disk>(
    performer: &Performer<D>,
    config: Config,
    listing: Listing,
) -> Result<(Journal<F>, Report), RecoveryError> {
    let mut buffer = vec![0; ReadRequest::LEN_MAX];
    let mut step = Recovery::<F>::start(config, listing);
    loop {
        step = match step {
            RecoveryStep::Perform(Effect::Read(request), recovery) => {
                // Only a single frame that is larger makes it grow, up to the payload limit.
                if request.len > buffer.len() {
                    buffer.resize(request.len, 0);
                }
                match performer.read(request, &mut buffer) {
                    Ok(n) => recovery.resume(Answer::Bytes(buffer.get(..n).unwrap_or_default()))?,
                    Err(failure) => recovery.resume(Answer::Failed(failure))?,
                }
            }
            RecoveryStep::Perform(effect, recovery) => match performer.perform(&effect) {
                Ok(()) => recovery.resume(Answer::Done)?,
                Err(failure) => recovery.resume(Answer::Failed(failure))?,
            },
            RecoveryStep::Done(journal, report) => return Ok((*journal, *report)),
        };
    }
}
