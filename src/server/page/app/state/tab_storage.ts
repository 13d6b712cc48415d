/** Texts that last until the tab is closed, as far as the browser permits. */

/** What the page needs of a storage. */
export type TextStorage = Pick<Storage, "getItem" | "setItem" | "removeItem">;

/** Returns a storage that never throws: a browser may refuse all of it, or a text for its size. */
export function tabStorage(open: () => TextStorage): TextStorage {
  const tried = <Result>(use: (storage: TextStorage) => Result): Result | null => {
    try {
      return use(open());
    } catch {
      return null; // it lasts until the page is reloaded
    }
  };
  return {
    getItem: (name) => tried((storage) => storage.getItem(name)),
    setItem: (name, text) => void tried((storage) => storage.setItem(name, text)),
    removeItem: (name) => void tried((storage) => storage.removeItem(name)),
  };
}
