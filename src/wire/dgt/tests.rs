use super::*;

#[test]
fn synthetic_broken_frame_then_a_good_one() {
    let mut items = Vec::new();
    Decoder::default().push(&[0x8e, 0x00, 0x8e, 0x00, 0x05, 0x24, 0x01], |item| {
        items.push(item)
    });
    let update = Message::FieldUpdate {
        square: RawSquare(0x24),
        piece: PieceCode::WhitePawn,
    };
    let cut = Skipped {
        bytes: 2,
        reason: SkipReason::CutShort { id: 0x8e },
    };
    assert_eq!(items, [Item::Skipped(cut), Item::Message(update)]);
}
