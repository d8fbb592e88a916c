//! Instructions of the processor, by the names of its manuals.

/// An instruction by its opcode.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Code {
    /// The implied prefix: 0 none, 1 `66`, 2 `F3`, 3 `F2`.
    pub(crate) prefix: u8,
    /// The table of opcodes: 1 `0F`, 2 `0F38`, 3 `0F3A`.
    pub(crate) map: u8,
    pub(crate) opcode: u8,
    /// The bit that makes lanes of 64 bits of those of 32, and means other things elsewhere.
    pub(crate) wide: bool,
}

const fn code(prefix: u8, map: u8, opcode: u8) -> Code {
    Code {
        prefix,
        map,
        opcode,
        wide: false,
    }
}

const fn wide(prefix: u8, map: u8, opcode: u8) -> Code {
    Code {
        wide: true,
        ..code(prefix, map, opcode)
    }
}

pub(crate) const VADDPS: Code = code(0, 1, 0x58);
pub(crate) const VSUBPS: Code = code(0, 1, 0x5c);
pub(crate) const VMULPS: Code = code(0, 1, 0x59);
pub(crate) const VDIVPS: Code = code(0, 1, 0x5e);
pub(crate) const VMINPS: Code = code(0, 1, 0x5d);
pub(crate) const VMAXPS: Code = code(0, 1, 0x5f);
pub(crate) const VSQRTPS: Code = code(0, 1, 0x51);
pub(crate) const VCMPPS: Code = code(0, 1, 0xc2);
pub(crate) const VROUNDPS: Code = code(1, 3, 0x08);
pub(crate) const VFMADD213PS: Code = code(1, 2, 0xa8);
pub(crate) const VFMADD231PS: Code = code(1, 2, 0xb8);
pub(crate) const VFMSUB213PS: Code = code(1, 2, 0xaa);
pub(crate) const VFMSUB231PS: Code = code(1, 2, 0xba);
pub(crate) const VFNMADD213PS: Code = code(1, 2, 0xac);
pub(crate) const VFNMADD231PS: Code = code(1, 2, 0xbc);
pub(crate) const VPADDD: Code = code(1, 1, 0xfe);
pub(crate) const VPSUBD: Code = code(1, 1, 0xfa);
pub(crate) const VPMULLD: Code = code(1, 2, 0x40);
pub(crate) const VPMINSD: Code = code(1, 2, 0x39);
pub(crate) const VPMAXSD: Code = code(1, 2, 0x3d);
pub(crate) const VPMINUD: Code = code(1, 2, 0x3b);
pub(crate) const VPMAXUD: Code = code(1, 2, 0x3f);
pub(crate) const VPAND: Code = code(1, 1, 0xdb);
pub(crate) const VPOR: Code = code(1, 1, 0xeb);
pub(crate) const VPXOR: Code = code(1, 1, 0xef);
pub(crate) const VPSLLVD: Code = code(1, 2, 0x47);
pub(crate) const VPSRAVD: Code = code(1, 2, 0x46);
pub(crate) const VPSRLVD: Code = code(1, 2, 0x45);
pub(crate) const VPABSD: Code = code(1, 2, 0x1e);
pub(crate) const VCVTDQ2PS: Code = code(0, 1, 0x5b);
pub(crate) const VCVTTPS2DQ: Code = code(2, 1, 0x5b);
pub(crate) const VMOVUPS: Code = code(0, 1, 0x10);
pub(crate) const VMOVUPS_STORE: Code = code(0, 1, 0x11);
// Past the caches.
pub(crate) const VMOVNTPS: Code = code(0, 1, 0x2b);
pub(crate) const VMOVNTDQ: Code = code(1, 1, 0xe7);
pub(crate) const VPMOVZXBD: Code = code(1, 2, 0x31);
pub(crate) const VPMOVZXWD: Code = code(1, 2, 0x33);
pub(crate) const VPMOVSXWD: Code = code(1, 2, 0x23);
pub(crate) const VPBROADCASTD: Code = code(1, 2, 0x58);
// With VEX only.
pub(crate) const VPCMPEQD: Code = code(1, 1, 0x76);
pub(crate) const VPCMPGTD: Code = code(1, 1, 0x66);
pub(crate) const VBLENDVPS: Code = code(1, 3, 0x4a);
pub(crate) const VEXTRACTI128: Code = code(1, 3, 0x39);
pub(crate) const VPACKUSDW: Code = code(1, 2, 0x2b);
pub(crate) const VPACKUSWB: Code = code(1, 1, 0x67);
pub(crate) const VMOVQ_STORE: Code = code(1, 1, 0xd6);
// With EVEX only.
pub(crate) const VCVTUDQ2PS: Code = code(3, 1, 0x7a);
pub(crate) const VCVTTPS2UDQ: Code = code(0, 1, 0x78);
pub(crate) const VPCMPD: Code = code(1, 3, 0x1f);
pub(crate) const VPCMPUD: Code = code(1, 3, 0x1e);
pub(crate) const VPBROADCASTD_GENERAL: Code = code(1, 2, 0x7c);
pub(crate) const VPMOVM2D: Code = code(2, 2, 0x38);
pub(crate) const VBLENDMPS: Code = code(1, 2, 0x65);
pub(crate) const VPTERNLOGD: Code = code(1, 3, 0x25);
pub(crate) const VPMOVDB: Code = code(2, 2, 0x31);
pub(crate) const VPMOVDW: Code = code(2, 2, 0x33);

// Of lanes of 8 bits.
pub(crate) const VPADDB: Code = code(1, 1, 0xfc);
pub(crate) const VPSUBB: Code = code(1, 1, 0xf8);
pub(crate) const VPMINUB: Code = code(1, 1, 0xda);
pub(crate) const VPMAXUB: Code = code(1, 1, 0xde);
// With VEX only.
pub(crate) const VPCMPEQB: Code = code(1, 1, 0x74);
// With EVEX only.
pub(crate) const VPCMPUB: Code = code(1, 3, 0x3e);
pub(crate) const VPMOVM2B: Code = code(2, 2, 0x28);

// Of lanes of 64 bits.
pub(crate) const VADDPD: Code = wide(1, 1, 0x58);
pub(crate) const VSUBPD: Code = wide(1, 1, 0x5c);
pub(crate) const VMULPD: Code = wide(1, 1, 0x59);
pub(crate) const VDIVPD: Code = wide(1, 1, 0x5e);
pub(crate) const VMINPD: Code = wide(1, 1, 0x5d);
pub(crate) const VMAXPD: Code = wide(1, 1, 0x5f);
pub(crate) const VSQRTPD: Code = wide(1, 1, 0x51);
pub(crate) const VCMPPD: Code = wide(1, 1, 0xc2);
pub(crate) const VROUNDPD: Code = wide(1, 3, 0x09);
pub(crate) const VFMADD213PD: Code = wide(1, 2, 0xa8);
pub(crate) const VFMADD231PD: Code = wide(1, 2, 0xb8);
pub(crate) const VCVTPD2PS: Code = wide(1, 1, 0x5a);
pub(crate) const VCVTTPD2DQ: Code = wide(1, 1, 0xe6);
pub(crate) const VCVTPS2PD: Code = code(0, 1, 0x5a);
pub(crate) const VCVTDQ2PD: Code = code(2, 1, 0xe6);
pub(crate) const VPMOVSXDQ: Code = code(1, 2, 0x25);
// With VEX only.
pub(crate) const VINSERTI128: Code = code(1, 3, 0x38);
pub(crate) const VSHUFPS: Code = code(0, 1, 0xc6);
pub(crate) const VPERMQ: Code = wide(1, 3, 0x00);
// With EVEX only.
pub(crate) const VPMOVM2Q: Code = wide(2, 2, 0x38);
pub(crate) const VPMOVQD: Code = code(2, 2, 0x35);
pub(crate) const VINSERTI64X4: Code = wide(1, 3, 0x3a);
pub(crate) const VEXTRACTI64X4: Code = wide(1, 3, 0x3b);
