/** A long conversation on a store: what each turn writes, and reads. */
import * as providerMock from "../../../modules/provider-mock/mod.ts";
import type { Change, Store } from "../../../src/store/store.ts";
import { assert, assertEquals } from "../../assert.ts";
import { service } from "../../support/runs.ts";
import { builtin } from "../play.ts";

const TURNS = 40;
/** Characters of a prompt, which the answer repeats in half. */
const PROMPT = 8_000;
/** Bytes of the conversation's messages. */
export const CONTENT = TURNS * PROMPT * 1.5;
/** Characters of a delta, of which an answer has a hundred. */
const DELTA = 40;
/** Most that is stored for a byte of a message. */
export const MOST_TIMES = 3;
const SEED = "a store keeps each message of a conversation once for its session and in the log of its run";

/** What one turn did with the store. */
interface Turn {
  bytes: number;
  changes: number;
  commits: number;
  reads: number;
  /** Entries that it read. */
  entries: number;
}

/** Returns text that does not repeat itself. `seed`: from 1. */
function textOf(seed: number, length: number): string {
  const words = SEED.split(" ");
  let state = seed;
  const next = () => words[(state = (state * 48_271) % 2_147_483_647) % words.length];
  return Array.from({ length: length / 3 }, next).join(" ").slice(0, length);
}

/** Plays a conversation; closes nothing. All turns write about as much, in as many statements. */
export async function converse(store: Store): Promise<void> {
  const turn: Turn = { bytes: 0, changes: 0, commits: 0, reads: 0, entries: 0 };
  const answers = Array.from({ length: TURNS }, (_, number) => textOf(2 * number + 1, PROMPT / 2));
  const { finish } = service({
    plans: { talk: { providers: [builtin(providerMock, { responses: answers, chunk_chars: DELTA })] } },
    store: () => counted(store, turn),
    limits: { retention_days: 36_500 }, // the store has a clock of its own
  });
  const turns: Turn[] = [];
  let session_id: string | undefined;
  for (let number = 0; number < TURNS; number++) {
    Object.assign(turn, { bytes: 0, changes: 0, commits: 0, reads: 0, entries: 0 });
    const prompt = textOf(2 * number + 2, PROMPT);
    const run = await finish(session_id ? null : "talk", { prompt, ...(session_id ? { session_id } : {}) });
    assertEquals(run.output_text, answers[number]);
    session_id = run.session_id;
    turns.push({ ...turn });
  }
  const [first, second, last] = [turns[0]!, turns[1]!, turns.at(-1)!];
  assert(
    last.bytes < first.bytes * 1.05,
    `the first turn wrote ${first.bytes} bytes, the last ${last.bytes}`,
  );
  assertEquals(last.entries, second.entries);
  if (store.kind !== "memory") return; // elsewhere entries that are made while a commit is on its way wait for the next one
  const statements = ({ bytes: _, ...counts }: Turn) => counts;
  assertEquals(statements(last), statements(second)); // the first one has no session to read
}

/** Counts what goes through a store. */
function counted(store: Store, turn: Turn): Store {
  return new Proxy(store, {
    get(target, name) {
      const method = Reflect.get(target, name);
      if (typeof method !== "function") return method;
      return (...args: unknown[]) => {
        if (name === "commit") count(turn, args[0] as readonly Change[]);
        if (name === "get" || name === "entries" || name === "list") turn.reads++;
        const result = Reflect.apply(method, target, args);
        if (name === "entries") {
          Promise.resolve(result as ReturnType<Store["entries"]>).then((found) => {
            turn.entries += found?.length ?? 0;
          });
        }
        return result;
      };
    },
  });
}

function count(turn: Turn, changes: readonly Change[]): void {
  turn.commits++;
  turn.changes += changes.length;
  turn.bytes += JSON.stringify(changes).length;
}
