//! Calls of operations: what comes out, and what is refused in which words.
#![allow(
    clippy::unwrap_used,
    reason = "a test that panics has failed, which is what is meant"
)]

use rstest::rstest;
use warploom_core::{Coded as _, DType};
use warploom_kernels::ImageType;
use warploom_kernels::op::{Given, OpCall, OpError, ValueType, find, image_type, ops};

fn plane(y: u64, x: u64) -> ImageType {
    ImageType::plane(DType::U16, y, x)
}

fn stack(z: u64, y: u64, x: u64) -> ImageType {
    ImageType::stack(DType::U16, z, y, x)
}

/// `"gaussian sigma=2"` on these images.
fn call(line: &str, inputs: &[ImageType]) -> Result<OpCall, OpError> {
    let mut words = line.split(' ');
    let name = words.next().unwrap();
    OpCall::new(name, &Given::parse(words)?, inputs)
}

/// What a person reads.
fn shown(error: &OpError) -> String {
    let help = error.help().map(|help| format!("\n  = help: {help}"));
    format!(
        "error[{}]: {error}{}",
        error.code(),
        help.unwrap_or_default()
    )
}

#[rstest]
#[case("gaussian sigma=2", vec![plane(5, 7)], "5x7 f32")]
#[case("gaussian sigma=2", vec![ImageType::plane(DType::F64, 5, 7)], "5x7 f64")]
#[case("median_box radius=1", vec![stack(3, 5, 7)], "3x5x7 u16")]
#[case("greater value=3", vec![plane(5, 7)], "5x7 u8")]
#[case("label_box", vec![plane(5, 7)], "5x7 u32")]
#[case("distance_transform", vec![plane(5, 7)], "5x7 f32")]
#[case("distance_transform", vec![ImageType::plane(DType::F64, 5, 7)], "5x7 f64")]
#[case("maximum_images", vec![plane(5, 7); 2], "5x7 u16")]
#[case("maximum_images", vec![plane(5, 7), ImageType::plane(DType::I16, 5, 7)], "5x7 f32")]
#[case("cast type=uint8", vec![plane(5, 7)], "5x7 u8")]
#[case("add_images", vec![plane(5, 7), ImageType::plane(DType::F64, 5, 7)], "5x7 f64")]
#[case("select", vec![plane(5, 7); 3], "5x7 u16")]
#[case("select", vec![plane(5, 7), plane(5, 7), ImageType::plane(DType::U8, 5, 7)], "5x7 f32")]
#[case("mask_image", vec![plane(5, 7), ImageType::plane(DType::F64, 5, 7)], "5x7 u16")]
#[case("max_z", vec![stack(3, 5, 7)], "5x7 u16")]
#[case("argmax_z", vec![stack(3, 5, 7)], "5x7 u32")]
#[case("crop y=1 x=2 height=3 width=4", vec![plane(5, 7)], "3x4 u16")]
#[case("crop z=2 x=6", vec![stack(3, 5, 7)], "1x5x1 u16")]
#[case("pad before=1,2 after=0,3", vec![plane(5, 7)], "6x12 u16")]
#[case("pad before=2", vec![plane(1, 7)], "5x11 u16")]
#[case("transpose_xy", vec![stack(3, 5, 7)], "3x7x5 u16")]
#[case("transpose_xz", vec![stack(3, 5, 7)], "7x5x3 u16")]
#[case("transpose_yz", vec![stack(3, 5, 7)], "5x3x7 u16")]
#[case("bin_mean factor=2", vec![stack(1, 5, 7)], "1x2x3 f32")]
#[case("bin_max factor=3,2", vec![plane(1, 7)], "1x3 u16")]
#[case("resize_linear factor=0.5", vec![plane(5, 7)], "2x4 f32")]
#[case("resize_nearest factor=2,1,3", vec![stack(3, 5, 7)], "6x5x21 u16")]
#[case("affine_linear matrix=1,0,2;0,1,3", vec![plane(5, 7)], "5x7 f32")]
#[case("blend_two overlap=2", vec![plane(5, 7), plane(5, 4)], "5x9 f32")]
#[case("convolve", vec![plane(5, 7), plane(9, 9)], "5x7 f32")]
#[case("richardson_lucy", vec![plane(5, 7), plane(3, 3)], "5x7 f32")]
#[case("watershed", vec![plane(5, 7), ImageType::plane(DType::F32, 5, 7)], "5x7 u32")]
#[case("totals", vec![plane(5, 7)], "numbers min, max, sum, mean, std")]
#[case("histogram bins=16", vec![plane(5, 7)], "16 numbers")]
#[case("percentiles q=1,50,99", vec![plane(5, 7)], "3 numbers")]
#[case("phase_shift", vec![plane(5, 7); 2], "numbers dy, dx")]
#[case("phase_shift", vec![stack(3, 5, 7); 2], "numbers dz, dy, dx")]
fn what_comes_out(#[case] line: &str, #[case] inputs: Vec<ImageType>, #[case] output: &str) {
    let call = call(line, &inputs).unwrap();
    assert_eq!(call.output().to_string(), output);
}

/// Once only the numbers of a matrix counted, and not where its rows end.
#[rstest]
#[case("1,0;0,1;0,0", "is 3x2; for 5x7 u16 it has to be 2x2, 2x3 or 3x3")]
#[case("1;0;0;1", "is 4x1; for 5x7 u16 it has to be 2x2, 2x3 or 3x3")]
#[case("1,0,0,1;0,0,1,1", "is 2x4; for 5x7 u16 it has to be 2x2, 2x3 or 3x3")]
#[case(
    "1,0,5;0,1",
    "has rows of 3, 2 numbers; for 5x7 u16 it has to be 2x2, 2x3 or 3x3"
)]
fn rows_of_a_matrix_are_as_long_as_they_were_written(#[case] matrix: &str, #[case] why: &str) {
    let line = format!("affine_linear matrix={matrix}");
    let error = call(&line, &[plane(5, 7)]).unwrap_err();
    let wanted = format!("parameter `matrix` of affine_linear {why}");
    assert_eq!(error.to_string(), wanted);
}

#[test]
fn objects_have_columns_for_the_axes_there_are() {
    let columns = |image: ImageType| match call("label_statistics", &[image, image]) {
        Ok(call) => match call.output() {
            ValueType::Table { columns } => columns.join(" "),
            other => panic!("{other}"),
        },
        Err(error) => panic!("{error}"),
    };
    let common = "label area sum mean minimum maximum std";
    assert_eq!(
        columns(plane(5, 7)),
        format!("{common} centroid_y centroid_x start_y start_x stop_y stop_x")
    );
    assert_eq!(
        columns(stack(1, 5, 7)),
        format!(
            "{common} centroid_z centroid_y centroid_x start_z start_y start_x stop_z stop_y stop_x"
        )
    );
}

#[test]
fn axes_of_one_pixel_are_left_alone() {
    let blur = call("gaussian sigma=2", &[stack(1, 5, 7)]).unwrap();
    assert_eq!(
        format!("{:?}", blur.per_axis("sigma", 0.0)),
        "[0.0, 2.0, 2.0]"
    );
    let blur = call("gaussian sigma=1.5,2,3", &[stack(3, 5, 7)]).unwrap();
    assert_eq!(
        format!("{:?}", blur.per_axis("sigma", 0.0)),
        "[1.5, 2.0, 3.0]"
    );
    let box_ = call("mean_box radius=4,2", &[plane(5, 7)]).unwrap();
    assert_eq!(box_.radius("radius"), [0, 4, 2]);
    let box_ = call("mean_box radius=0,2", &[plane(5, 7)]).unwrap();
    assert_eq!(box_.radius("radius"), [0, 0, 2]);
}

#[test]
fn a_call_is_shown_with_all_its_parameters() {
    let blur = call("gaussian sigma=1,2", &[plane(5, 7)]).unwrap();
    assert_eq!(
        blur.to_string(),
        "gaussian(sigma=1,2, truncate=4, boundary=clamp)"
    );
}

/// Every operation can be called: its required parameters with plain values.
#[test]
fn every_operation_takes_every_type_it_names() {
    for op in ops() {
        let mut given = Given::new();
        for param in op.params() {
            let value = match param.name {
                "sigma" | "sigma1" | "sigma2" | "radius" | "exponent" | "gamma" | "value"
                | "low" | "factor" | "minimum" | "overlap" | "before" | "degrees" => "1",
                "high" | "q" => "50",
                "maximum" => "9",
                "matrix" => "1,0,0,0,1,0,0,0,1",
                "type" => "u8",
                _ => continue,
            };
            given = given.with(param.name, value);
        }
        let (count, _) = op.input_count();
        for dtype in op.inputs[0].takes() {
            let image = ImageType::stack(*dtype, 3, 5, 7);
            let mut inputs = vec![ImageType::stack(DType::U16, 3, 5, 7); count];
            inputs[0] = image;
            let made = OpCall::new(op.name, &given, &inputs);
            let made = made.unwrap_or_else(|error| panic!("{}", shown(&error)));
            assert_eq!(made.outputs.len(), 1);
        }
    }
}

#[test]
fn refusals_say_what_was_asked_and_where_to_read_on() {
    let half = ImageType::plane(DType::F16, 5, 7);
    let float = ImageType::plane(DType::F32, 5, 7);
    let huge = plane(1 << 20, 1 << 20);
    let cases: &[(&str, &[ImageType])] = &[
        ("gausian sigma=2", &[plane(5, 7)]),
        ("sharpen_everything", &[plane(5, 7)]),
        ("gaussian sigma", &[plane(5, 7)]),
        ("gaussian =2", &[plane(5, 7)]),
        ("gaussian sigmas=2", &[plane(5, 7)]),
        ("sobel radius=2", &[plane(5, 7)]),
        ("abs value=2", &[plane(5, 7)]),
        ("gaussian sigma=1 sigma=2", &[plane(5, 7)]),
        ("gaussian", &[plane(5, 7)]),
        ("gaussian sigma=NaN", &[plane(5, 7)]),
        ("gaussian sigma=-1", &[plane(5, 7)]),
        ("gaussian sigma=inf", &[plane(5, 7)]),
        ("gaussian sigma=wide", &[plane(5, 7)]),
        ("gaussian sigma=1,2,3", &[plane(5, 7)]),
        ("gaussian sigma=1,2,3,4", &[plane(5, 7)]),
        ("gaussian sigma=1 boundary=mirror", &[plane(5, 7)]),
        ("mean_box radius=0", &[plane(5, 7)]),
        ("mean_box radius=0,0", &[plane(5, 7)]),
        ("mean_box radius=-1", &[plane(5, 7)]),
        ("mean_box radius=1.5", &[plane(5, 7)]),
        ("laplacian_of_gaussian sigma=0", &[plane(5, 7)]),
        ("clip low=5 high=3", &[plane(5, 7)]),
        ("percentile_normalize low=50 high=50", &[plane(5, 7)]),
        ("percentiles q=1,101", &[plane(5, 7)]),
        ("histogram bins=0", &[plane(5, 7)]),
        ("cast type=f16", &[plane(5, 7)]),
        ("cast type=u8 scale_from=5,5", &[plane(5, 7)]),
        (
            "remove_small_labels minimum=3 relabel=maybe",
            &[plane(5, 7)],
        ),
        ("crop z=1", &[plane(5, 7)]),
        ("crop height=0", &[plane(5, 7)]),
        ("crop y=3 height=4", &[plane(5, 7)]),
        ("crop x=7", &[plane(5, 7)]),
        ("affine_linear matrix=1,0,0,1,0", &[plane(5, 7)]),
        ("affine_linear matrix=1,0,0;0,1,0;0,1,1", &[plane(5, 7)]),
        ("affine_linear matrix=1,0;0,1;0,0", &[plane(5, 7)]),
        ("affine_linear matrix=1;0;0;1", &[plane(5, 7)]),
        ("affine_linear matrix=1,0,0;0,1", &[plane(5, 7)]),
        ("affine_linear matrix=1,0;0,1", &[stack(3, 5, 7)]),
        ("bin_mean factor=9", &[plane(5, 7)]),
        ("resize_linear factor=0.01", &[plane(5, 7)]),
        ("resize_linear factor=1000", &[plane(5000, 5000)]),
        ("blend_two overlap=5", &[plane(5, 7), plane(5, 4)]),
        ("richardson_lucy", &[plane(5, 7)]),
        ("richardson_lucy sigma=1", &[plane(5, 7), plane(3, 3)]),
        ("add_images", &[plane(5, 7)]),
        ("gaussian sigma=1", &[]),
        ("watershed", &[plane(5, 7)]),
        ("gaussian sigma=1", &[plane(5, 7), plane(5, 7)]),
        ("add_images", &[plane(5, 7), plane(5, 8)]),
        ("add_images", &[plane(5, 7), stack(1, 5, 7)]),
        ("convolve", &[plane(5, 7), stack(1, 5, 7)]),
        ("max_z", &[plane(5, 7)]),
        ("gradient_z", &[plane(5, 7)]),
        ("gaussian sigma=1", &[half]),
        ("relabel_sequential", &[float]),
        ("gaussian sigma=1", &[plane(0, 7)]),
        ("gaussian sigma=1", &[huge]),
    ];
    let text: Vec<String> = cases
        .iter()
        .map(|(line, inputs)| match call(line, inputs) {
            Ok(call) => panic!("{call} was not refused"),
            Err(error) => format!("{line}\n{}\n", shown(&error)),
        })
        .collect();
    insta::assert_snapshot!("refusals", text.join("\n"));
}

#[test]
fn files_of_other_ranks_are_refused() {
    let op = find("gaussian").unwrap();
    let row = image_type(op, 0, DType::F32, &[11]).unwrap_err();
    let deep = image_type(op, 0, DType::F32, &[2, 3, 4, 5]).unwrap_err();
    insta::assert_snapshot!(format!("{}\n{}", shown(&row), shown(&deep)), @"
    error[WL0614]: input `image` of gaussian has 1 axis; it takes planes (2 axes) and stacks (3 axes)
      = help: axes are y,x or z,y,x; see `warploom ops gaussian`
    error[WL0614]: input `image` of gaussian has 4 axes; it takes planes (2 axes) and stacks (3 axes)
      = help: axes are y,x or z,y,x; see `warploom ops gaussian`
    ");
    let image = image_type(op, 0, DType::F32, &[1, 2, 3]).unwrap();
    assert_eq!(image.shape(), [1, 2, 3]);
}

#[test]
fn pages_are_for_reading() {
    use warploom_kernels::op::page::{list_text, page_text};
    insta::assert_snapshot!("list", list_text());
    for name in ["gaussian", "crop", "watershed", "label_statistics"] {
        insta::assert_snapshot!(format!("page_{name}"), page_text(find(name).unwrap()));
    }
    for op in ops() {
        let page = page_text(op);
        assert!(
            page.lines().all(|line| line.chars().count() <= 160),
            "{page}"
        );
    }
}

#[test]
fn pages_are_data_too() {
    use warploom_kernels::op::page::Pages;
    let pages = Pages::of([find("cast").unwrap()]);
    insta::assert_snapshot!(
        "page_cast_json",
        serde_json::to_string_pretty(&pages).unwrap()
    );
    let all = serde_json::to_value(Pages::all()).unwrap();
    assert_eq!(all["ops"].as_array().unwrap().len(), ops().count());
}
