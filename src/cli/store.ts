/** Opens the store that the settings of a command name. */
import { errorMessage } from "../sdk/errors.ts";
import { describeStore, openStore, type StoreName } from "../store/open_store.ts";
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
export async function openSettingsStore(settings: Settings, lasting: boolean): Promise<OpenedStore> {
  const { store } = settings;
  if (store === "memory" || store === "auto" && !lasting) return { store: undefined, warning: null };
  if (store === "auto" && settings.home === null) return inMemory("there is no home folder");
  const name = lastingStore(settings);
  try {
    return { store: await openStore(name), warning: null };
  } catch (error) {
    const { NotCapable, PermissionDenied } = Deno.errors;
    const is_refused = error instanceof NotCapable || error instanceof PermissionDenied;
    if (store === "auto" && is_refused) return inMemory(errorMessage(error));
    throw storeFailure(name, error);
  }
}

/** Returns the lasting store of the settings. @throws {UsageError} for memory, and without a home folder. */
export function lastingStore({ store, home }: Settings): StoreName {
  if (store !== "auto" && store !== "memory") return store;
  if (store === "auto" && home !== null) {
    return { kind: "sqlite", path: filePath(new URL("preamp.db", home)) };
  }
  throw new UsageError(
    "Cannot find the store: name one with --store, such as sqlite:preamp.db, postgres://HOST/DATABASE or kv",
  );
}

/** Returns the error for a store that cannot be used, with the reason and without a password. */
export function storeFailure(name: StoreName, error: unknown): UsageError {
  return new UsageError(
    `Cannot use the store ${describeStore(name)}: ${errorMessage(error)}; ` +
      "choose another place with --store, or --store memory to keep nothing",
    { cause: error },
  );
}

function inMemory(reason: string): OpenedStore {
  const fact = `Runs are kept in memory and end with this process: ${reason}`;
  return { store: undefined, warning: `${fact}. Set store to choose another place.` };
}
