//! Devices.

use std::ffi::{c_char, c_int, c_uint};

use crate::driver::attributes::attribute;
use crate::driver::call::calls;
use crate::driver::ffi::{CUdevice, CUuuid, Handle, Out, Text, TextRoom};
use crate::driver::machine::Machine;
use crate::driver::status::Status;
use crate::plan::PciAddress;

calls! {
    /// How many there are.
    fn cuDeviceGetCount(count: Out<c_int>) |call| {
        let devices = call.machine()?.devices.len();
        count.put(c_int::try_from(devices).unwrap_or(c_int::MAX))
    }

    /// The device with a number.
    fn cuDeviceGet(device: Out<CUdevice>, ordinal: c_int) |call| {
        call.device(ordinal)?;
        device.put(ordinal)
    }

    /// Its name.
    fn cuDeviceGetName(name: TextRoom, bytes: c_int, device: CUdevice) |call| {
        let device = call.device(device)?;
        let room = usize::try_from(bytes).map_err(|_| Status::INVALID_VALUE)?;
        name.put(room, &device.spec().name).map(|_| ())
    }

    /// The UUID of the card, also for a part of a divided card.
    fn cuDeviceGetUuid(uuid: Out<CUuuid>, device: CUdevice) |call| {
        let spec = call.device(device)?.spec();
        uuid.put(CUuuid { bytes: spec.uuid.0 })
    }

    /// The UUID of the device, which may be a part of a card.
    fn cuDeviceGetUuid_v2(uuid: Out<CUuuid>, device: CUdevice) |call| {
        let spec = call.device(device)?.spec();
        uuid.put(CUuuid { bytes: spec.mig.unwrap_or(spec.uuid).0 })
    }

    /// A number that only Windows has.
    fn cuDeviceGetLuid(_luid: *mut c_char, _nodes: Out<c_uint>, device: CUdevice) |call| {
        call.device(device)?;
        Err(Status::NOT_SUPPORTED)
    }

    /// All its memory.
    fn cuDeviceTotalMem_v2(bytes: Out<usize>, device: CUdevice) |call| {
        let total = call.device(device)?.budget().total();
        bytes.put(usize::try_from(total).unwrap_or(usize::MAX))
    }

    /// A property.
    fn cuDeviceGetAttribute(value: Out<c_int>, number: c_uint, device: CUdevice) |call| {
        value.put(attribute(call.device(device)?, number)?)
    }

    /// Its compute capability.
    fn cuDeviceComputeCapability(major: Out<c_int>, minor: Out<c_int>, device: CUdevice) |call| {
        let device = call.device(device)?;
        major.put(attribute(device, 75)?)?;
        minor.put(attribute(device, 76)?)
    }

    /// Where it is plugged in.
    fn cuDeviceGetPCIBusId(text: TextRoom, bytes: c_int, device: CUdevice) |call| {
        let device = call.device(device)?;
        let room = usize::try_from(bytes).map_err(|_| Status::INVALID_VALUE)?;
        let address = device.spec().pci.to_string();
        if room <= address.len() {
            return Err(Status::INVALID_VALUE);
        }
        text.put(room, &address).map(|_| ())
    }

    /// The device that is plugged in somewhere.
    fn cuDeviceGetByPCIBusId(device: Out<CUdevice>, text: Text) |call| {
        let devices = &call.machine()?.devices;
        let asked = PciAddress::parse(&text.read()?).ok_or(Status::INVALID_VALUE)?;
        let found = devices.iter().find(|device| device.spec().pci == asked);
        let found = found.ok_or(Status::INVALID_DEVICE)?;
        device.put(c_int::try_from(found.ordinal()).unwrap_or(c_int::MAX))
    }

    /// Whether kernels of a device can reach the memory of another: all can.
    fn cuDeviceCanAccessPeer(answer: Out<c_int>, device: CUdevice, peer: CUdevice) |call| {
        call.device(device)?;
        call.device(peer)?;
        answer.put(c_int::from(device != peer))
    }

    /// How well they do.
    fn cuDeviceGetP2PAttribute(
        value: Out<c_int>,
        number: c_uint,
        source: CUdevice,
        destination: CUdevice,
    ) |call| {
        call.device(source)?;
        call.device(destination)?;
        if source == destination {
            return Err(Status::INVALID_DEVICE);
        }
        match number {
            // Access, and native atomics.
            2 | 3 => value.put(1),
            // The rank, which is the best; textures in arrays, which are not there.
            1 | 4 | 5 => value.put(0),
            _ => Err(Status::INVALID_VALUE),
        }
    }

    /// Lets kernels of the current context reach the memory of another one.
    fn cuCtxEnablePeerAccess(peer: Handle, flags: c_uint) |call| {
        let context = call.context()?;
        if flags != 0 {
            return Err(Status::INVALID_VALUE);
        }
        let peer = Machine::get()?.contexts.get(peer);
        let peer = peer.map_err(|_| Status::INVALID_CONTEXT)?;
        if peer.device().index() == context.device().index() {
            return Err(Status::PEER_ACCESS_UNSUPPORTED);
        }
        if !context.add_peer(peer.handle()) {
            return Err(Status::PEER_ACCESS_ALREADY_ENABLED);
        }
        Ok(())
    }

    /// And no longer.
    fn cuCtxDisablePeerAccess(peer: Handle) |call| {
        if !call.context()?.remove_peer(peer) {
            return Err(Status::PEER_ACCESS_NOT_ENABLED);
        }
        Ok(())
    }
}
