/** Asks for the API key of the server. */
import { useState } from "preact/hooks";
import type { AppState } from "../state/app_state.ts";
import { Button } from "../ui/button.tsx";
import { Dialog } from "../ui/dialog.tsx";

/** The dialog for the key: it stays in memory unless the user wants to keep it for the tab. */
export function KeyDialog({ state }: { state: AppState }) {
  const [key, setKey] = useState("");
  const [keep, setKeep] = useState(false);
  const close = () => state.overlay.value = null;
  return (
    <Dialog label="API key" onClose={close}>
      <form
        class="body"
        onSubmit={(event) => {
          event.preventDefault();
          state.useKey(key, keep);
        }}
      >
        <h2>This server asks for an API key</h2>
        <p class="muted">
          <code>preamp serve</code>{" "}
          prints an address that needs no key to be typed. A server with keys of its own has an operator: ask
          for one.
        </p>
        {state.problem.value && <p class="failed" role="alert">{state.problem.value}</p>}
        <input
          type="password"
          aria-label="API key"
          autocomplete="off"
          value={key}
          onInput={(event) => setKey(event.currentTarget.value)}
        />
        <label class="row">
          <input type="checkbox" checked={keep} onChange={(event) => setKeep(event.currentTarget.checked)} />
          keep it until this tab is closed
        </label>
        <div class="row">
          <button type="submit" class="primary">Use this key</button>
          <Button onClick={close}>Close</Button>
        </div>
      </form>
    </Dialog>
  );
}
