//! Types and numbers against cudarc's bindings, which are made of NVIDIA's header.

use std::mem::{align_of, offset_of, size_of};

use cudarc::driver::sys;
use libtest_mimic::Trial;
use warploom_cuda_emu::driver::Status;
use warploom_cuda_emu::driver::ffi::{
    CUuuid, LaunchAttribute, LaunchConfig, MemAccess, MemLocation, MemPoolProps, Memcpy2D, Memcpy3D,
};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        Trial::test("structures_are_laid_out_as_in_the_header", || {
            structures();
            Ok(())
        }),
        Trial::test("errors_are_numbered_as_in_the_header", || {
            errors();
            Ok(())
        }),
    ]
}

/// Size and alignment.
fn same<A, B>(name: &str) {
    let ours = (size_of::<A>(), align_of::<A>());
    assert_eq!(ours, (size_of::<B>(), align_of::<B>()), "{name}");
}

/// That fields lie at the same places.
macro_rules! same_fields {
    ($ours:ident, $theirs:ident: $($our:ident = $their:ident),* $(,)?) => {
        same::<$ours, sys::$theirs>(stringify!($theirs));
        $(assert_eq!(
            offset_of!($ours, $our),
            offset_of!(sys::$theirs, $their),
            "{}.{}", stringify!($theirs), stringify!($their),
        );)*
    };
}

fn structures() {
    same_fields!(CUuuid, CUuuid: bytes = bytes);
    same_fields!(Memcpy2D, CUDA_MEMCPY2D:
        src_x = srcXInBytes, src_y = srcY, src_type = srcMemoryType, src_host = srcHost,
        src_device = srcDevice, src_array = srcArray, src_pitch = srcPitch,
        dst_x = dstXInBytes, dst_y = dstY, dst_type = dstMemoryType, dst_host = dstHost,
        dst_device = dstDevice, dst_array = dstArray, dst_pitch = dstPitch,
        width = WidthInBytes, height = Height);
    same_fields!(Memcpy3D, CUDA_MEMCPY3D:
        src_x = srcXInBytes, src_y = srcY, src_z = srcZ, src_lod = srcLOD,
        src_type = srcMemoryType, src_host = srcHost, src_device = srcDevice,
        src_array = srcArray, src_pitch = srcPitch, src_height = srcHeight,
        dst_x = dstXInBytes, dst_y = dstY, dst_z = dstZ, dst_lod = dstLOD,
        dst_type = dstMemoryType, dst_host = dstHost, dst_device = dstDevice,
        dst_array = dstArray, dst_pitch = dstPitch, dst_height = dstHeight,
        width = WidthInBytes, height = Height, depth = Depth);
    same_fields!(Memcpy3D, CUDA_MEMCPY3D_PEER:
        src_context = srcContext, dst_context = dstContext, depth = Depth);
    same_fields!(MemLocation, CUmemLocation: kind = type_, id = id);
    same_fields!(MemAccess, CUmemAccessDesc: location = location, flags = flags);
    same_fields!(MemPoolProps, CUmemPoolProps:
        kind = allocType, handle_types = handleTypes, location = location,
        security = win32SecurityAttributes);
    same_fields!(LaunchConfig, CUlaunchConfig:
        grid = gridDimX, block = blockDimX, shared = sharedMemBytes, stream = hStream,
        attributes = attrs, attribute_count = numAttrs);
    same_fields!(LaunchAttribute, CUlaunchAttribute: id = id);
}

fn errors() {
    use sys::CUresult as R;
    let known = [
        R::CUDA_SUCCESS,
        R::CUDA_ERROR_INVALID_VALUE,
        R::CUDA_ERROR_OUT_OF_MEMORY,
        R::CUDA_ERROR_NOT_INITIALIZED,
        R::CUDA_ERROR_NO_DEVICE,
        R::CUDA_ERROR_INVALID_DEVICE,
        R::CUDA_ERROR_INVALID_IMAGE,
        R::CUDA_ERROR_INVALID_CONTEXT,
        R::CUDA_ERROR_NO_BINARY_FOR_GPU,
        R::CUDA_ERROR_ECC_UNCORRECTABLE,
        R::CUDA_ERROR_UNSUPPORTED_LIMIT,
        R::CUDA_ERROR_PEER_ACCESS_UNSUPPORTED,
        R::CUDA_ERROR_INVALID_PTX,
        R::CUDA_ERROR_UNSUPPORTED_PTX_VERSION,
        R::CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY,
        R::CUDA_ERROR_FILE_NOT_FOUND,
        R::CUDA_ERROR_OPERATING_SYSTEM,
        R::CUDA_ERROR_INVALID_HANDLE,
        R::CUDA_ERROR_NOT_FOUND,
        R::CUDA_ERROR_NOT_READY,
        R::CUDA_ERROR_ILLEGAL_ADDRESS,
        R::CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES,
        R::CUDA_ERROR_LAUNCH_TIMEOUT,
        R::CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED,
        R::CUDA_ERROR_PEER_ACCESS_NOT_ENABLED,
        R::CUDA_ERROR_CONTEXT_IS_DESTROYED,
        R::CUDA_ERROR_ASSERT,
        R::CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED,
        R::CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED,
        R::CUDA_ERROR_HARDWARE_STACK_ERROR,
        R::CUDA_ERROR_ILLEGAL_INSTRUCTION,
        R::CUDA_ERROR_MISALIGNED_ADDRESS,
        R::CUDA_ERROR_INVALID_PC,
        R::CUDA_ERROR_LAUNCH_FAILED,
        R::CUDA_ERROR_NOT_PERMITTED,
        R::CUDA_ERROR_NOT_SUPPORTED,
        R::CUDA_ERROR_UNKNOWN,
    ];
    for theirs in known {
        let ours = Status::new(theirs as i32);
        assert_eq!(ours.to_string(), format!("{theirs:?}"));
    }
}
