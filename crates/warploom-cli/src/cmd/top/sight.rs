//! Looking at the machine.

use std::sync::Arc;

use warploom::watch::Machine;
use warploom::watch::board::Board;
use warploom::{LeaseScope, Options, Registry, Status};

use crate::args;
use crate::report::Problem;
use crate::settings::{self, Environment};

/// Whoever looks: the registry for devices and leases, the board for what runs.
#[derive(Debug)]
pub(super) struct Sight {
    registry: Registry,
    options: Options,
    board: Board,
}

impl Sight {
    pub(super) fn open(args: &args::Top, environment: &Environment) -> Result<Self, Problem> {
        let mut options = settings::backends(environment)?;
        let folder = args.leases.clone().unwrap_or_else(|| environment.leases());
        let board = Board::beside_leases(&folder);
        options.leases = LeaseScope::Folder(folder);
        let registry = Registry::linked();
        registry.initialize(&options)?;
        Ok(Self {
            registry,
            options,
            board,
        })
    }

    fn status(&self) -> Result<Arc<Status>, Problem> {
        Ok(self.registry.status()?)
    }

    /// What people should hear about detection.
    pub(super) fn warnings(&self) -> Vec<String> {
        let status = self.status();
        status.map_or_else(|_| Vec::new(), |status| status.warnings())
    }

    /// The machine now. Devices are those of the last detection: asking drivers every second would
    /// cost those who work more than it tells.
    pub(super) fn look(&self) -> Result<Machine, Problem> {
        let status = self.status()?;
        let leases = self.registry.desk()?.status().map_err(Problem::failure)?;
        let runs = self.board.notices().map_err(Problem::failure)?;
        Ok(Machine::of(&status, leases, runs))
    }

    /// Asks the drivers again.
    pub(super) fn rescan(&self) -> Result<(), Problem> {
        self.registry.rescan(&self.options)?;
        Ok(())
    }
}
