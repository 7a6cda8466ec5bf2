//! The PGN files that `simulate` and `demo` play.

use std::fs;
use std::path::Path;

use super::Failure;
use crate::sim::pgn::{self, PgnError, PgnErrorKind, SimGame};

/// All games of a file that have moves, and one at least. A game that cannot be played is refused by its number.
pub(super) fn load(path: &Path) -> Result<Vec<SimGame>, Failure> {
    fs::read(path)
        .map_err(Failure::from)
        .and_then(|text| read(&text))
        .map_err(|failure| failure.context(path.display().to_string()))
}

fn read(bytes: &[u8]) -> Result<Vec<SimGame>, Failure> {
    if let Some((what, advice)) = no_text(bytes) {
        return Err(Failure::failed(what).advise(advice));
    }
    let games: Vec<SimGame> = pgn::read(bytes)
        .into_iter()
        .collect::<Result<_, _>>()
        .map_err(refused)?;
    let read = games.len();
    let games: Vec<SimGame> = games
        .into_iter()
        .filter(|game| !game.moves.is_empty())
        .collect();
    if games.is_empty() {
        let what = match read {
            0 => "there is no game in it",
            1 => "game 1 of the PGN has no moves",
            _ => "none of its games has moves",
        };
        return Err(Failure::failed(what).advise(
            "Name a file in PGN, with the moves in English letters, as: 1. e4 e5 2. Nf3 Nc6 *",
        ));
    }
    if games.len() < read {
        tracing::warn!(
            "{} games of the file have no moves and are left out",
            read - games.len()
        );
    }
    Ok(games)
}

fn refused(error: PgnError) -> Failure {
    let advice = match &error.kind {
        PgnErrorKind::Start { .. } => "Correct the FEN tag of that game, or take the game out.",
        PgnErrorKind::Variant(_) => "Take that game out.",
        PgnErrorKind::Move { .. } | PgnErrorKind::Unreadable { .. } => {
            "Correct the move (in English letters: K Q R B N), or take the game out."
        }
        PgnErrorKind::Unclosed { .. } | PgnErrorKind::AfterResult { .. } | PgnErrorKind::Tag(_) => {
            "Correct that game, or take it out."
        }
    };
    Failure::failed(error).advise(advice)
}

/// What a file is that is no text in which PGN could stand, and what to do. Games would be read from some of these, or none and
/// no complaint.
fn no_text(bytes: &[u8]) -> Option<(&'static str, &'static str)> {
    const PACKED: [&[u8]; 5] = [
        b"\x1f\x8b",
        b"PK\x03\x04",
        b"\x28\xb5\x2f\xfd",
        b"BZh",
        b"\xfd7zXZ",
    ];
    if PACKED.iter().any(|mark| bytes.starts_with(mark)) {
        return Some(("it is packed", "Unpack it first."));
    }
    let nul = bytes.iter().position(|&byte| byte == 0)?;
    let marked = bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff");
    // Every other byte of plain letters in UTF-16 is nought.
    let advice = match marked || nul < 2 {
        true => "It looks like UTF-16: save it as UTF-8 (iconv -f UTF-16 -t UTF-8).",
        false => "It is no PGN, or was damaged: fetch or export it again.",
    };
    Some(("it holds bytes that are no text", advice))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(bytes: &[u8]) -> (String, String) {
        let failure = read(bytes).unwrap_err();
        let chain = failure.chain().unwrap();
        (chain, failure.advice().unwrap().to_owned())
    }

    #[test]
    fn what_is_no_pgn_is_told_with_what_to_do() {
        let utf16: Vec<u8> = "\u{feff}1. e4 *"
            .encode_utf16()
            .flat_map(u16::to_le_bytes)
            .collect();
        let cases: [(&[u8], &str, &str); 10] = [
            (b"", "there is no game in it", "in PGN"),
            (b"\n\n", "there is no game in it", "in PGN"),
            (
                b"hello, world",
                "1. hello, cannot be read",
                "English letters",
            ),
            (
                b"[Event \"x\"]\n\n*\n",
                "game 1 of the PGN has no moves",
                "e4 e5",
            ),
            (b"1. e4 \0 e5 *", "no text", "export it again"),
            (&utf16, "no text", "UTF-8"),
            (&utf16[2..], "no text", "UTF-8"),
            (b"\x28\xb5\x2f\xfd\0", "it is packed", "Unpack"),
            (
                b"[FEN \"x\"]\n\n1. e4 *\n",
                "game 1 of the PGN: cannot start",
                "FEN tag",
            ),
            (
                b"1. e4 *\n\n[Event \"b\"]\n\n1. e4 Ke7 *\n",
                "game 2 of the PGN: 1... Ke7 cannot be played",
                "Correct the move",
            ),
        ];
        for (bytes, what, to_do) in cases {
            let (chain, advice) = refusal(bytes);
            assert!(chain.contains(what), "{chain}");
            assert!(advice.contains(to_do), "{advice}");
        }
    }

    #[test]
    fn a_game_without_moves_does_not_keep_the_others_from_being_played() {
        let games = read(b"[Event \"a\"]\n\n*\n\n[Event \"b\"]\n\n1. e4 *\n").unwrap();
        assert_eq!(games.len(), 1);
        assert_eq!(games[0].number, 2);
    }

    #[test]
    fn a_file_that_cannot_be_read_is_named_with_what_to_do() {
        let folder = tempfile::tempdir().unwrap();
        for (path, to_do) in [
            (folder.path().to_owned(), "not a folder"),
            (folder.path().join("none.pgn"), "name"),
        ] {
            let failure = load(&path).unwrap_err();
            assert!(failure.chain().unwrap().starts_with(path.to_str().unwrap()));
            assert!(failure.advice().unwrap().contains(to_do), "{failure:?}");
        }
    }
}
