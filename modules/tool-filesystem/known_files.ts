/**
 * The files that the model knows: those that it has read or written, as they were then. A change of such a
 * file is refused when its bytes are others now, and all of a file is replaced only when it is known. The
 * record lasts as long as the session and is shared with sub-agents: each keeps what it has seen itself, and
 * knows beside it what its parent or its sub-agents have seen. What commands do to files is not noticed
 * until the file is to be changed.
 */
import { FileError } from "../files/access.ts";
import type { Coordinator } from "preamp/base";

/** Begin of the keys in `session_state`, one for each file; `shared:` is for sub-agents too. */
const KEY = "shared:file:";
/** Characters of the keys and values in `session_state`, which all modules share; the oldest are dropped. */
const MAX_SAVED_CHARS = 32_768;
/** Bytes of a SHA-256 that tell two states of a file apart. */
const HASH_BYTES = 16;

/** The known files of one session. */
export class KnownFiles {
  readonly #session: Pick<Coordinator, "session_state">;
  /** Real path → hash; also of files that `session_state` has no room for. */
  readonly #seen = new Map<string, string>();

  constructor(session: Pick<Coordinator, "session_state">) {
    this.#session = session;
  }

  /** Notes that the model has read a file, or written all of it. */
  async add(path: string, bytes: Uint8Array): Promise<void> {
    const hash = await hashOf(bytes);
    this.#seen.set(path, hash);
    this.#save(KEY + path, hash);
  }

  /** Forgets a file that the model has deleted. */
  delete(path: string): void {
    this.#seen.delete(path);
    delete this.#session.session_state[KEY + path];
  }

  /**
   * Checks a file before a part of it is changed, or before it is moved or deleted. Resolves to whether it is
   * known.
   *
   * @throws {FileError} when it is known, and has changed since.
   */
  async checkUnchanged(path: string, bytes: Uint8Array, shown: string): Promise<boolean> {
    const known = this.#hashOf(path);
    if (known === undefined) return false;
    if (known === await hashOf(bytes)) return true;
    throw new FileError(`${shown} has changed since it was read: read it again`);
  }

  /** Checks a file before all of it is replaced. @throws {FileError} when it is not known as it is now. */
  async checkKnown(path: string, bytes: Uint8Array, shown: string): Promise<void> {
    if (await this.checkUnchanged(path, bytes, shown) || bytes.length === 0) return;
    throw new FileError(
      `${shown} exists and was not read in this conversation: read it before all of it is replaced`,
    );
  }

  #hashOf(path: string): string | undefined {
    const saved = this.#session.session_state[KEY + path];
    return this.#seen.get(path) ?? (typeof saved === "string" ? saved : undefined);
  }

  #save(key: string, hash: string): void {
    const { session_state } = this.#session;
    if (session_state[key] === hash) return;
    const others = Object.keys(session_state).filter((other) => other.startsWith(KEY) && other !== key);
    let chars = charsOf(key, hash) + others.reduce((sum, other) => sum + charsOf(other, hash), 0);
    for (const oldest of others) {
      if (chars <= MAX_SAVED_CHARS) break;
      delete session_state[oldest];
      chars -= charsOf(oldest, hash);
    }
    try {
      session_state[key] = hash;
    } catch (error) {
      if (!(error instanceof RangeError)) throw error; // no room: known until the run ends
    }
  }
}

function charsOf(key: string, hash: string): number {
  return key.length + hash.length + 6; // quotes, a colon, a comma
}

async function hashOf(bytes: Uint8Array): Promise<string> {
  const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes.slice()));
  return hash.subarray(0, HASH_BYTES).toBase64({ alphabet: "base64url", omitPadding: true });
}
