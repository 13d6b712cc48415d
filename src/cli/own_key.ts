/** The key of the person who starts a server, in `key` of `$PREAMP_HOME`: it lasts until it is replaced. */
import { generateKey } from "../policy/api_keys.ts";
import { errorMessage } from "../sdk/errors.ts";
import { UsageError } from "./arguments.ts";
import { filePath } from "../settings/paths.ts";

const KEY = /^pk_[\w-]{43}$/;

/** A key, and the reason why it ends with this process; null: it is kept. */
export interface OwnKey {
  readonly key: string;
  readonly not_kept: string | null;
}

/**
 * Returns the key in the home folder; makes one if it has none. Only its owner may read the file. Two
 * servers that start at the same time have the same key.
 *
 * @param home `$PREAMP_HOME`; null: no home is known, and the key is for this process.
 * @param renews Whether a new key takes the place of the one that is there.
 * @throws {UsageError} for a file that has no key.
 */
export async function ownKey(home: URL | null, renews: boolean): Promise<OwnKey> {
  const key = generateKey();
  if (home === null) return { key, not_kept: "there is no home folder" };
  const url = new URL("key", home);
  const temporary = new URL(`key.${crypto.randomUUID()}`, home);
  try {
    if (!renews) {
      const known = await readKey(url);
      if (known !== null) return { key: known, not_kept: null };
    }
    await Deno.mkdir(home, { recursive: true });
    await Deno.writeTextFile(temporary, `${key}\n`, { createNew: true, mode: 0o600 });
    if (renews) await Deno.rename(temporary, url);
    else await Deno.link(filePath(temporary), filePath(url)); // fails when another server was first
    return { key, not_kept: null };
  } catch (error) {
    if (error instanceof UsageError) throw error;
    const known = error instanceof Deno.errors.AlreadyExists ? await readKey(url) : null;
    return known === null ? { key, not_kept: errorMessage(error) } : { key: known, not_kept: null };
  } finally {
    await Deno.remove(temporary).catch(() => {}); // it was renamed, or not written
  }
}

async function readKey(url: URL): Promise<string | null> {
  try {
    const key = (await Deno.readTextFile(url)).trim();
    if (KEY.test(key)) return key;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return null;
    throw error;
  }
  throw new UsageError(`Cannot use the key in ${JSON.stringify(filePath(url))}: make another with --new-key`);
}
