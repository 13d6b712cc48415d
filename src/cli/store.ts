/** Opens the store that the settings of a command name. */
import { errorMessage } from "../sdk/errors.ts";
import { openStore, type StoreName } from "../store/open_store.ts";
import type { Store } from "../store/store.ts";
import { UsageError } from "./arguments.ts";
import { filePath } from "./paths.ts";
import type { Settings } from "./settings.ts";

/** The store of a command. */
export interface OpenedStore {
  /** Undefined: memory. */
  readonly store: Store | undefined;
  /** Reason why runs are kept in memory although they should last; null if they are where they should be. */
  readonly warning: string | null;
}

/**
 * Opens the store of the settings. `auto` is the file `preamp.db` in `$PREAMP_HOME` when `lasting`, else memory; where
 * this process may not write that file it is memory too, with a warning.
 *
 * @throws {UsageError} when a store that the settings name cannot be opened, or the default file is damaged.
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
  if (name === "memory") return { store: undefined, warning: null };
  try {
    return { store: await openStore(name), warning: null };
  } catch (error) {
    throw new UsageError(
      `${errorMessage(error)}; choose another place with --store, or --store memory to keep nothing`,
      { cause: (error as Error).cause },
    );
  }
}

function isRefused(cause: unknown): boolean {
  return cause instanceof Deno.errors.NotCapable || cause instanceof Deno.errors.PermissionDenied;
}

function memoryWarning(reason: string): string {
  return `Runs are kept in memory and end with this process: ${reason}. Set store to choose another place.`;
}
