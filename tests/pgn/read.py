"""Reads games with python-chess and compares them with what they were written from.

    read.py GAMES.pgn EXPECTED.jsonl

Each line of the second file tells what the game at the same place in the first one holds. Prints "N games read", or the
differences, and then exits with 1.
"""

import json
import logging
import sys

import chess
import chess.pgn

complaints = []


class Complaints(logging.Handler):
    def emit(self, record):
        complaints.append(record.getMessage())


def differences(game, expected):
    for error in game.errors:
        yield f"error: {error}"
    board = game.board()
    moves, clk, emt = [], [], []
    for node in game.mainline():
        moves.append(board.uci(node.move))
        board.push(node.move)
        clk.append(node.clock())
        emt.append(node.emt())
        if node.variations[1:]:
            yield f"a variation at {node.move}"
    if board.chess960 != expected["chess960"]:
        yield f"chess960 is {board.chess960}"
    for name, read in [("moves", moves), ("clk", clk), ("emt", emt), ("fen", board.shredder_fen() if board.chess960 else board.fen())]:
        if read != expected[name]:
            yield f"{name}: {read}\n  instead of {expected[name]}"
    for name, value in expected["tags"].items():
        if game.headers.get(name) != value:
            yield f"{name}: {game.headers.get(name)!r} instead of {value!r}"
    try:
        game.time_control()
    except ValueError as error:
        yield f"time control: {error}"


def main(games, expectations):
    logging.getLogger("chess.pgn").addHandler(Complaints())
    logging.getLogger("chess.pgn").propagate = False
    count = 0
    failed = False
    with open(games, encoding="utf-8", newline="\n") as text, open(expectations, encoding="utf-8") as lines:
        for count, line in enumerate(lines, start=1):
            game = chess.pgn.read_game(text)
            found = ["not there"] if game is None else list(differences(game, json.loads(line)))
            for difference in found + complaints:
                failed = True
                print(f"game {count}: {difference}")
            complaints.clear()
        if chess.pgn.read_game(text) is not None:
            failed = True
            print(f"more than {count} games")
    print(f"{count} games read")
    return failed


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
