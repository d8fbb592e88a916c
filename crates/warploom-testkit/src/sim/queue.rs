//! A simulated queue.

use std::any::Any;
use std::sync::Arc;

use warploom_core::{Arg, DeviceError, Event, Grid, Kernel, Queue, Result, Slice};

use super::engine::{Work, World};
use super::event::{Point, SimEvent};
use super::memory::Effect;
use crate::fake::{Call, Fate};

#[derive(Debug)]
pub(super) struct SimQueue {
    pub(super) world: Arc<World>,
    pub(super) line: usize,
}

impl SimQueue {
    fn push(&self, work: Work, fate: Fate) {
        let doom = match fate {
            Fate::Fine => None,
            Fate::Doomed(error) => Some(error),
        };
        self.world.push(self.line, work, doom);
    }

    fn mark(&self) -> Arc<Point> {
        let point = Arc::new(Point::default());
        self.push(Work::Mark(Arc::clone(&point)), Fate::Fine);
        self.world.submit(self.line);
        point
    }

    fn event(&self, point: Arc<Point>) -> SimEvent {
        SimEvent {
            world: Arc::clone(&self.world),
            point,
        }
    }
}

impl Queue for SimQueue {
    fn upload(&mut self, src: &[u8], dst: &Slice) -> Result<()> {
        let fate = self.world.card.admit(Call::Upload)?;
        self.push(Work::Effect(Effect::write(src, dst)?), fate);
        Ok(())
    }

    fn download(&mut self, src: &Slice, dst: &mut [u8]) -> Result<()> {
        self.world.card.enter(Call::Download)?;
        let point = self.mark();
        let event = self.event(point);
        loop {
            match event.wait(None) {
                Err(DeviceError::Timeout { .. }) => {}
                other => break other?,
            }
        }
        let content = super::buffer::SimBuffer::content(src.buffer())?;
        dst.copy_from_slice(&content.bytes()[src.host_range()]);
        Ok(())
    }

    fn copy(&mut self, src: &Slice, dst: &Slice) -> Result<()> {
        let fate = self.world.card.admit(Call::Copy)?;
        self.push(Work::Effect(Effect::copy(src, dst)?), fate);
        Ok(())
    }

    fn launch(&mut self, kernel: &Arc<dyn Kernel>, grid: Grid, args: &[Arg]) -> Result<()> {
        let fate = self.world.card.admit(Call::Launch)?;
        self.push(Work::Effect(Effect::launch(kernel, grid, args)?), fate);
        Ok(())
    }

    fn record(&mut self) -> Result<Arc<dyn Event>> {
        self.world.card.enter(Call::Record)?;
        let point = self.mark();
        Ok(Arc::new(self.event(point)))
    }

    fn wait(&mut self, event: &Arc<dyn Event>) -> Result<()> {
        self.world.card.enter(Call::Wait)?;
        let any: &dyn Any = &**event;
        match any.downcast_ref::<SimEvent>() {
            Some(own) => self.push(Work::Wait(Arc::clone(&own.point)), Fate::Fine),
            None => event.wait(None)?,
        }
        Ok(())
    }
}

impl Drop for SimQueue {
    fn drop(&mut self) {
        self.world.submit(self.line);
    }
}
