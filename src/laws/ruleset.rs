//! The editions of the Laws by name, and where each says what a judgement rests on.
//!
//! No other module compares editions or names the article of a matter: which article an alert rests on is a line of a table here, by
//! edition. What is judged does not differ between editions yet.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// An edition of the Laws of Chess, by the year in which it came into force.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Ruleset {
    Fide1997,
    /// The Swiss translation of 1997, which differs in Articles 8.5, 9.4 and 13.6.
    Fide1997Ch,
    Fide2001,
    Fide2005,
    Fide2009,
    Fide2014,
    Fide2018,
    #[default]
    Fide2023,
}

/// Which games an edition tells apart by their thinking time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Variant {
    #[default]
    Standard,
    /// Annex B in 1997, Appendix A later.
    Rapid,
    /// Annex C in 1997, Appendix B later.
    Blitz,
}

/// What a game is played under.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Rules {
    pub ruleset: Ruleset,
    pub variant: Variant,
    /// Whether there are arbiters enough that rapid and blitz follow the competition rules (2023: A.4, B.2).
    pub supervised: bool,
}

/// What an article is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Matter {
    IllegalMove,
    OutOfTurn,
    Displaced,
    CastlingUnfinished,
    PromotionUnfinished,
    PressWithoutMove,
    SetupWrong,
    Flag,
}

impl Ruleset {
    pub const ALL: [Ruleset; 8] = [
        Ruleset::Fide1997,
        Ruleset::Fide1997Ch,
        Ruleset::Fide2001,
        Ruleset::Fide2005,
        Ruleset::Fide2009,
        Ruleset::Fide2014,
        Ruleset::Fide2018,
        Ruleset::Fide2023,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Ruleset::Fide1997 => "fide-1997",
            Ruleset::Fide1997Ch => "fide-1997-ch",
            Ruleset::Fide2001 => "fide-2001",
            Ruleset::Fide2005 => "fide-2005",
            Ruleset::Fide2009 => "fide-2009",
            Ruleset::Fide2014 => "fide-2014",
            Ruleset::Fide2018 => "fide-2018",
            Ruleset::Fide2023 => "fide-2023",
        }
    }

    /// The article of the Laws proper on this. None if this edition has none, or none is known to us: a wrong one
    /// would be worse.
    pub fn article(self, matter: Matter) -> Option<&'static str> {
        let (_, articles) = ARTICLES.iter().find(|(of, _)| *of == matter)?;
        articles[self as usize]
    }
}

impl Variant {
    pub fn as_str(self) -> &'static str {
        match self {
            Variant::Standard => "standard",
            Variant::Rapid => "rapid",
            Variant::Blitz => "blitz",
        }
    }
}

impl Rules {
    /// The article on this: that of the rapid or blitz annex where it has its own and nobody supervises, else that
    /// of the Laws proper.
    pub fn article(&self, matter: Matter) -> Option<&'static str> {
        if !self.follows_annex() {
            return self.ruleset.article(matter);
        }
        ANNEXES
            .iter()
            .find(|(ruleset, variant, of, _)| {
                (*ruleset, *variant, *of) == (self.ruleset, self.variant, matter)
            })
            .map(|(.., article)| *article)
            .or_else(|| self.ruleset.article(matter))
    }

    /// Whether what the annexes say of rapid and blitz holds. Before 2009 they knew no supervision.
    pub fn follows_annex(&self) -> bool {
        self.variant != Variant::Standard && (!self.supervised || self.ruleset < Ruleset::Fide2009)
    }
}

impl Default for Rules {
    /// The newest edition, standard play, supervised.
    fn default() -> Rules {
        Rules {
            ruleset: Ruleset::default(),
            variant: Variant::default(),
            supervised: true,
        }
    }
}

/// A name that is none of ours.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("unknown {what} {name:?}; known are {known}")]
pub struct UnknownName {
    what: &'static str,
    name: String,
    known: String,
}

impl FromStr for Ruleset {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Ruleset, UnknownName> {
        named("ruleset", name, &Ruleset::ALL, Ruleset::as_str)
    }
}

impl fmt::Display for Ruleset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Variant {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Variant, UnknownName> {
        let all = [Variant::Standard, Variant::Rapid, Variant::Blitz];
        named("variant", name, &all, Variant::as_str)
    }
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

fn named<T: Copy>(
    what: &'static str,
    name: &str,
    all: &[T],
    as_str: fn(T) -> &'static str,
) -> Result<T, UnknownName> {
    all.iter()
        .copied()
        .find(|&value| as_str(value) == name)
        .ok_or_else(|| UnknownName {
            what,
            name: name.to_owned(),
            known: all
                .iter()
                .map(|&value| as_str(value))
                .collect::<Vec<_>>()
                .join(", "),
        })
}

type Articles = [Option<&'static str>; Ruleset::ALL.len()];

/// Articles by edition, in the order of [`Ruleset::ALL`].
///
/// 1997, 2001 and 2009 follow the texts; so does 2023. Those of 2005, 2014 and 2018 are known from later quotations: 2005 numbers as
/// 2001 does, 2014 as 2018 but with letters. Where 1997 and 2009 number alike, what lies between is taken to do so too.
#[rustfmt::skip]
const ARTICLES: [(Matter, Articles); 8] = [
    //                              1997                1997-ch             2001          2005          2009          2014          2018           2023
    // The position before is put back.
    (Matter::IllegalMove,        [Some("7.4"),        Some("7.4"),        Some("7.4a"), Some("7.4a"), Some("7.4a"), Some("7.5a"), Some("7.5.1"), Some("7.5.1")]),
    // The players move in turn.
    (Matter::OutOfTurn,          [Some("1.1"),        Some("1.1"),        Some("1.1"),  Some("1.1"),  Some("1.1"),  Some("1.1"),  Some("1.2"),   Some("1.2")]),
    // Who displaces men puts them back in his own time.
    (Matter::Displaced,          [Some("7.3"),        Some("7.3"),        Some("7.3"),  Some("7.3"),  Some("7.3"),  Some("7.4"),  Some("7.4"),   Some("7.4")]),
    // Castling is one move of king and rook.
    (Matter::CastlingUnfinished, [Some("3.5a"),       Some("3.5a"),       None,         None,         Some("3.8"),  Some("3.8"),  Some("3.8"),   Some("3.8")]),
    // The pawn is exchanged as part of the move; since 2005 a press with the pawn still there is an illegal move.
    (Matter::PromotionUnfinished,[Some("3.4e"),       Some("3.4e"),       None,         Some("7.4a"), Some("7.4a"), Some("7.5a"), Some("7.5.2"), Some("7.5.2")]),
    // Only since 2018 more than something to note.
    (Matter::PressWithoutMove,   [None,               None,               None,         None,         None,         None,         Some("7.5.3"), Some("7.5.3")]),
    // The initial position.
    (Matter::SetupWrong,         [Some("2.3"),        Some("2.3"),        Some("2.3"),  Some("2.3"),  Some("2.3"),  Some("2.3"),  Some("2.3"),   Some("2.3")]),
    // After a flag fall it is checked at once whether the moves are completed.
    (Matter::Flag,               [Some("6.3"),        Some("6.3"),        Some("6.3"),  Some("6.3"),  Some("6.3"),  Some("6.4"),  Some("6.4"),   Some("6.4")]),
];

/// Where rapid and blitz have an article of their own; what is not here follows the Laws proper.
#[rustfmt::skip]
const ANNEXES: [(Ruleset, Variant, Matter, &str); 15] = [
    // The opponent may claim the win before he moves; afterwards the illegal move stands.
    (Ruleset::Fide1997,   Variant::Blitz, Matter::IllegalMove,         "C.3"),
    (Ruleset::Fide1997Ch, Variant::Blitz, Matter::IllegalMove,         "C.3"),
    (Ruleset::Fide2009,   Variant::Blitz, Matter::IllegalMove,         "B.3c"),
    // A flag has fallen when a player claims it.
    (Ruleset::Fide1997,   Variant::Rapid, Matter::Flag,                "B.6"),
    (Ruleset::Fide1997,   Variant::Blitz, Matter::Flag,                "B.6"),
    (Ruleset::Fide1997Ch, Variant::Rapid, Matter::Flag,                "B.6"),
    (Ruleset::Fide1997Ch, Variant::Blitz, Matter::Flag,                "B.6"),
    // The arbiter acts, or the opponent claims, before the next move.
    (Ruleset::Fide2023,   Variant::Rapid, Matter::IllegalMove,         "A.5.2"),
    (Ruleset::Fide2023,   Variant::Rapid, Matter::PromotionUnfinished, "A.5.2"),
    (Ruleset::Fide2023,   Variant::Rapid, Matter::PressWithoutMove,    "A.5.2"),
    (Ruleset::Fide2023,   Variant::Blitz, Matter::IllegalMove,         "A.5.2"),
    (Ruleset::Fide2023,   Variant::Blitz, Matter::PromotionUnfinished, "A.5.2"),
    (Ruleset::Fide2023,   Variant::Blitz, Matter::PressWithoutMove,    "A.5.2"),
    // The arbiter calls a flag that he sees.
    (Ruleset::Fide2023,   Variant::Rapid, Matter::Flag,                "A.5.5"),
    (Ruleset::Fide2023,   Variant::Blitz, Matter::Flag,                "A.5.5"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_back() {
        for (index, ruleset) in Ruleset::ALL.into_iter().enumerate() {
            assert_eq!(ruleset.to_string().parse(), Ok(ruleset));
            // The columns of the table are found by this.
            assert_eq!(ruleset as usize, index);
        }
        for name in ["standard", "rapid", "blitz"] {
            let variant: Variant = name.parse().expect(name);
            assert_eq!(variant.to_string(), name);
        }
    }

    #[test]
    fn an_unknown_name_is_told_the_known_ones() {
        let error = "fide-2024".parse::<Ruleset>().expect_err("no such edition");
        assert!(
            error
                .to_string()
                .starts_with("unknown ruleset \"fide-2024\"")
        );
        assert!(error.to_string().ends_with("fide-2018, fide-2023"));
        let error = "bullet".parse::<Variant>().expect_err("no such variant");
        assert_eq!(
            error.to_string(),
            "unknown variant \"bullet\"; known are standard, rapid, blitz"
        );
    }

    #[test]
    fn articles_follow_the_edition() {
        for (name, matter, article) in [
            ("fide-1997", Matter::IllegalMove, Some("7.4")),
            ("fide-2001", Matter::IllegalMove, Some("7.4a")),
            ("fide-2023", Matter::IllegalMove, Some("7.5.1")),
            ("fide-2009", Matter::PromotionUnfinished, Some("7.4a")),
            ("fide-2023", Matter::PromotionUnfinished, Some("7.5.2")),
            ("fide-2009", Matter::PressWithoutMove, None),
            ("fide-2018", Matter::PressWithoutMove, Some("7.5.3")),
            ("fide-2009", Matter::Flag, Some("6.3")),
            ("fide-2023", Matter::Flag, Some("6.4")),
        ] {
            let ruleset: Ruleset = name.parse().expect(name);
            assert_eq!(ruleset.article(matter), article, "{name} {matter:?}");
        }
    }

    #[test]
    fn rapid_and_blitz_have_their_own_where_nobody_supervises() {
        let blitz = Rules {
            variant: Variant::Blitz,
            supervised: false,
            ..Rules::default()
        };
        assert_eq!(blitz.article(Matter::IllegalMove), Some("A.5.2"));
        assert_eq!(blitz.article(Matter::Displaced), Some("7.4"));
        let supervised = Rules {
            supervised: true,
            ..blitz
        };
        assert_eq!(supervised.article(Matter::IllegalMove), Some("7.5.1"));
        let old = Rules {
            ruleset: Ruleset::Fide1997,
            ..supervised
        };
        assert_eq!(old.article(Matter::IllegalMove), Some("C.3"));
    }
}
