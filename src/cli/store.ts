/** Opens the store that the settings of a command name. */
import { describeStore, openStore, type StoreName } from "../store/open_store.ts";
import type { Store } from "../store/store.ts";
import { filePath } from "./paths.ts";
import type { Settings } from "./settings.ts";

/** An open store and its name for messages, without a password. */
export interface OpenedStore {
  /** Undefined: memory. */
  readonly store: Store | undefined;
  readonly name: string;
  /** Reason why runs are kept in memory although they should last; null if they are where they should be. */
  readonly warning: string | null;
}

/**
 * Opens the store of the settings. `auto` is the file `preamp.db` in `$PREAMP_HOME` when `lasting`, else memory; where
 * this process may not write that file it is memory too, with a warning.
 *
 * @throws {Error} when a store that the settings name cannot be opened, or the default file is damaged.
 */
export async function openSettingsStore({ store, home }: Settings, lasting: boolean): Promise<OpenedStore> {
  if (store !== "auto") return await open(store);
  if (!lasting) return await open("memory");
  if (home === null) return { ...await open("memory"), warning: memoryWarning("there is no home folder") };
  try {
    return await open({ kind: "sqlite", path: filePath(new URL("preamp.db", home)) });
  } catch (error) {
    if (!isRefused((error as Error).cause)) throw error;
    return { ...await open("memory"), warning: memoryWarning((error as Error).message) };
  }
}

async function open(name: StoreName | "memory"): Promise<OpenedStore> {
  if (name === "memory") return { store: undefined, name, warning: null };
  return { store: await openStore(name), name: describeStore(name), warning: null };
}

function isRefused(cause: unknown): boolean {
  return cause instanceof Deno.errors.NotCapable || cause instanceof Deno.errors.PermissionDenied;
}

function memoryWarning(reason: string): string {
  return `Runs are kept in memory and end with this process: ${reason}. Set store to choose another place.`;
}
