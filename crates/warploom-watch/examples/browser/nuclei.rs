//! Pictures that look like stained nuclei, and like what a segmentation makes of them.

const SIDE: u32 = 96;

/// A picture before and after, as PNG files.
pub(crate) fn pair(seed: u32) -> (Vec<u8>, Vec<u8>) {
    let cells: Vec<(f64, f64, f64)> = (0..14_u32)
        .map(|at| {
            let draw = (seed * 31 + at).wrapping_mul(2_654_435_761);
            let part = |shift: u32| f64::from(draw >> shift & 255) / 255.0;
            let side = f64::from(SIDE);
            (part(24) * side, part(16) * side, 4.0 + 5.0 * part(8))
        })
        .collect();
    let (mut gray, mut colour) = (Vec::new(), Vec::new());
    for y in 0..SIDE {
        for x in 0..SIDE {
            let (mut light, mut nearest) = (14.0, None);
            for (number, &(cx, cy, radius)) in cells.iter().enumerate() {
                let away = (f64::from(x) - cx).hypot(f64::from(y) - cy) / radius;
                light += 190.0 * (-away * away * 1.4).exp();
                if away < 1.0 && nearest.is_none_or(|(best, _)| away < best) {
                    nearest = Some((away, number));
                }
            }
            let noise =
                f64::from((x * 7_919 + y * 104_729 + seed).wrapping_mul(2_654_435_761) >> 28);
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "casts of floats saturate"
            )]
            gray.push((light + noise) as u8);
            colour.extend(nearest.map_or([8, 10, 14], |(_, cell)| hue(cell)));
        }
    }
    (
        png(png::ColorType::Grayscale, &gray),
        png(png::ColorType::Rgb, &colour),
    )
}

fn hue(cell: usize) -> [u8; 3] {
    const HUES: [[u8; 3]; 7] = [
        [230, 90, 90],
        [90, 170, 240],
        [240, 190, 70],
        [120, 210, 120],
        [190, 120, 230],
        [80, 210, 200],
        [240, 140, 60],
    ];
    HUES[cell % HUES.len()]
}

fn png(colour: png::ColorType, pixels: &[u8]) -> Vec<u8> {
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, SIDE, SIDE);
    encoder.set_color(colour);
    encoder.set_depth(png::BitDepth::Eight);
    let written = encoder
        .write_header()
        .and_then(|mut writer| writer.write_image_data(pixels));
    // A vector takes everything, and the sizes agree.
    if written.is_err() {
        file.clear();
    }
    file
}
