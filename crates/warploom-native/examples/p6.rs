use std::time::Instant;
use memmap2::MmapMut;
use warploom_native::*;
fn huge(n: usize) -> (MmapMut, usize) { let m = MmapMut::map_anon(n + (2<<20)).unwrap(); m.advise(memmap2::Advice::HugePage).unwrap(); let a = m.as_ptr() as usize; (m, a.next_multiple_of(2<<20)-a) }
fn main() {
    let stag: usize = std::env::args().nth(1).map_or(0, |s| s.parse().unwrap());
    let variant = std::env::args().nth(2).unwrap_or_default();
    let w = Element::Word;
    let mut c = vec![
        Ins::Row{row:0,element:Element::U16}, Ins::Un(Un::IntToFloat,0), Ins::Row{row:1,element:w}, Ins::Bin(Bin::SubF,1,2), Ins::Row{row:2,element:w}, Ins::Bin(Bin::MulF,3,4),
        Ins::Number(0), Ins::Bin(Bin::MaxF,5,6), Ins::Number(1), Ins::Number(2), Ins::Fma(7,8,9), Ins::Un(Un::Sqrt,10), Ins::Number(3), Ins::Number(4), Ins::Fma(11,12,13),
        Ins::Bin(Bin::MaxF,14,6), Ins::Number(5), Ins::Bin(Bin::MinF,15,16), Ins::Un(Un::Round,17), Ins::Un(Un::FloatToInt,18)];
    let mut last = 19;
    if variant != "short" { c.push(Ins::Number(6)); c.push(Ins::Number(7)); c.push(Ins::Bin(Bin::MaxI,19,20)); c.push(Ins::Bin(Bin::MinI,22,21)); last = 23; }
    c.push(Ins::Put{out:0,element:Element::U8,value:last});
    let width = if variant == "ymm" {Width::Bits256} else {Width::Bits512};
    let r = Routine::new(&c, width).unwrap();
    let n = 2048*2048;
    let (mut a, ao) = huge(n*2*8+65536); let (mut b, bo) = huge(n*4+65536); let (mut d, dof) = huge(n*4+65536); let (mut o, oo) = huge(n+65536);
    for m in [&mut a,&mut b,&mut d,&mut o] { for x in m.iter_mut().step_by(1) { *x = 63; } }
    let mut mem = vec![0.0f32; r.memory()+16]; let off = mem.as_ptr().align_offset(64); let mem = &mut mem[off..]; r.start(mem);
    for (i,v) in [0.0f32,1.0,0.375,7.0,-14.0,255.0].iter().enumerate() { r.set_number(mem,i as u16,v.to_bits()); }
    if variant != "short" { r.set_number(mem,6,0); } if variant != "short" { r.set_number(mem,7,255); } 
    let mut best=f64::MAX;
    for rep in 0..200 {
        let f = rep%8;
        let t=Instant::now();
        for y in 0..2048 {
            let rows: [&[u8];3] = [&a[ao+f*n*2+y*4096..][..4096], &b[bo+stag+y*8192..][..8192], &d[dof+2*stag+y*8192..][..8192]];
            r.run(mem,&rows,&mut [&mut o[oo+3*stag+y*2048..][..2048]],0,2048);
        }
        best=best.min(t.elapsed().as_secs_f64());
    }
    println!("{variant} stagger {stag}: {:.0} Mpix/s", n as f64/best/1e6);
}
