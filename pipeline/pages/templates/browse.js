// Show the pairs of a sample whose scores are within the bounds, 20 at a time. The page is also
// parsed as XML, so this script must not contain "less than" signs and ampersands.
(() => {
  const box = document.getElementById("browse"), more = document.getElementById("more");
  const pairs = [...box.querySelectorAll(".pair")], inputs = [...box.querySelectorAll("input")];
  const form = box.querySelector("form"), said = box.querySelector("output");
  const group = box.querySelector("select");
  let most = 20;
  const within = (pair) => {
    const values = pair.dataset.values.split(" ").map(Number);
    return inputs.every((input) => {
      if (input.value === "") return true;
      const bound = Number(input.value), value = values[Number(input.dataset.score)];
      return input.dataset.end === "low" ? value >= bound : bound >= value;
    });
  };
  const update = () => {
    let all = 0, found = 0;
    for (const pair of pairs) {
      const counts = pair.dataset.group === group.value;
      const shows = counts ? within(pair) : false;
      if (counts) all += 1;
      if (shows) found += 1;
      pair.hidden = !shows || found > most;
    }
    said.textContent = `${found} of ${all} pairs, ${Math.min(found, most)} shown`;
    more.hidden = most >= found;
  };
  form.addEventListener("input", () => { most = 20; update(); });
  for (const button of form.querySelectorAll("button")) {
    button.addEventListener("click", () => {
      for (const input of inputs)
        input.value = button.dataset.to === "selected" ? input.dataset.selected : "";
      most = 20;
      update();
    });
  }
  more.addEventListener("click", () => {
    most += 20;
    update();
    const first = pairs.filter((pair) => !pair.hidden)[most - 20];
    first.tabIndex = -1;
    first.focus();  // keyboard users and screen readers continue at the first new pair
  });
  form.hidden = false;
  update();
})();
