/** Folders of tests. */

/** A new folder, removed with everything in it at the end of its scope. */
export interface TemporaryFolder extends AsyncDisposable {
  /** Its path without links and without a slash at the end. */
  readonly path: string;
}

/** Creates a folder. */
export async function temporaryFolder(): Promise<TemporaryFolder> {
  const path = await Deno.realPath(await Deno.makeTempDir());
  return { path, [Symbol.asyncDispose]: () => removeFolder(path) };
}

/** Removes a folder, also while a process that is about to end still writes into it. */
async function removeFolder(path: string, tries = 20): Promise<void> {
  try {
    await Deno.remove(path, { recursive: true });
  } catch (error) {
    if (tries === 0) throw error;
    await new Promise((resolve) => setTimeout(resolve, 100));
    await removeFolder(path, tries - 1);
  }
}

/** Calls `body` with the path of a new folder. */
export async function inFolder(body: (path: string) => Promise<void>): Promise<void> {
  await using folder = await temporaryFolder();
  await body(folder.path);
}
