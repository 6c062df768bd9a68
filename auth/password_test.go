package auth_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/crypto/bcrypt"

	"github.com/wlmserver/wlmserver/auth"
)

// counted counts the calls of bcrypt.
func counted(a *auth.Authenticator, calls *atomic.Int64) {
	a.SetCompare(func(hash, password []byte) error {
		calls.Add(1)
		return bcrypt.CompareHashAndPassword(hash, password)
	})
}

func TestEveryFailureCostsOneCheck(t *testing.T) {
	a := newAuth(t, auth.Config{UsersFile: twoUsers(t)})
	var calls atomic.Int64
	counted(a, &calls)
	for i := range 3 {
		for _, c := range [][2]string{{"ann", "wrong"}, {"bob", "secret"}, {"nobody", "secret"}, {"", "x"}, {"nobody", ""}} {
			before := calls.Load()
			if _, err := a.Authenticate(request(c[0], c[1])); !isUnauthenticated(err) {
				t.Errorf("%v: %v", c, err)
			}
			if n := calls.Load() - before; n != 1 {
				t.Errorf("round %d, %v: %d checks, want 1", i, c, n)
			}
		}
		// Now ann's password is known: a wrong one must cost no less.
		if _, err := a.Authenticate(request("ann", "secret")); err != nil {
			t.Fatal(err)
		}
	}
}

// A name that does not exist is checked against a hash as costly as the others.
func TestDecoysCostWhatUsersCost(t *testing.T) {
	text := ""
	for cost := bcrypt.MinCost; cost < bcrypt.MinCost+2; cost++ {
		h, err := bcrypt.GenerateFromPassword([]byte("x"), cost)
		if err != nil {
			t.Fatal(err)
		}
		text += fmt.Sprintf("user%d: {hash: '%s'}\n", cost, h)
	}
	a := newAuth(t, auth.Config{UsersFile: usersFile(t, text)})
	seen := map[int]bool{}
	a.SetCompare(func(hash, _ []byte) error {
		cost, err := bcrypt.Cost(hash)
		if err != nil {
			t.Error(err)
		}
		seen[cost] = true
		return bcrypt.ErrMismatchedHashAndPassword
	})
	costOf := map[string]int{}
	for round := range 2 {
		for i := range 64 { // all alike by chance: 1 in 2^63
			name := fmt.Sprintf("nobody%d", i)
			clear(seen)
			_, _ = a.Authenticate(request(name, fmt.Sprint(round)))
			for cost := range seen {
				if round > 0 && costOf[name] != cost {
					t.Errorf("%s cost %d, then %d", name, costOf[name], cost)
				}
				costOf[name] = cost
			}
		}
	}
	kinds := map[int]bool{}
	for _, cost := range costOf {
		kinds[cost] = true
	}
	if len(costOf) != 64 || len(kinds) != 2 {
		t.Errorf("%d names with costs %v, want both costs of the users", len(costOf), kinds)
	}
}

func TestDecoyIsAFullHash(t *testing.T) {
	for _, cost := range []int{bcrypt.MinCost, bcrypt.MinCost + 1} {
		h := auth.HashOfDecoy(cost)
		if !regexp.MustCompile(`^\$2a\$\d\d\$[./A-Za-z0-9]{53}$`).Match(h) {
			t.Errorf("%s is no bcrypt hash", h)
		}
		if err := bcrypt.CompareHashAndPassword(h, []byte("x")); !errors.Is(err, bcrypt.ErrMismatchedHashAndPassword) {
			t.Errorf("%s: %v: bcrypt gave up early", h, err)
		}
	}
}

func TestARightPasswordIsRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAuth(t, auth.Config{UsersFile: twoUsers(t)})
		var calls atomic.Int64
		counted(a, &calls)
		ask := func(want int64, user, password string, ok bool) {
			t.Helper()
			if _, err := a.Authenticate(request(user, password)); (err == nil) != ok {
				t.Errorf("%s: %v", user, err)
			}
			if calls.Load() != want {
				t.Errorf("%d checks so far, want %d", calls.Load(), want)
			}
		}
		ask(1, "ann", "secret", true)
		ask(1, "ann", "secret", true)
		ask(2, "bob", "secret", false) // what ann proved is worth nothing for bob
		ask(3, "bob", "hunter", true)
		ask(3, "ann", "secret", true)
		ask(4, "ann", "wrong", false)
		ask(4, "ann", "secret", true) // a wrong one does not make it forget
		time.Sleep(5*time.Minute - 1)
		ask(4, "ann", "secret", true)
		time.Sleep(time.Nanosecond)
		ask(5, "ann", "secret", true)
		ask(5, "ann", "secret", true)
	})
}

// Many requests of one client at once, none known yet: they must not check one after the other.
func TestManyRequestsOfOneUserCheckOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAuth(t, auth.Config{UsersFile: twoUsers(t)})
		const slots = 2
		a.SetSlots(slots)
		var calls atomic.Int64
		a.SetCompare(func(_, password []byte) error {
			calls.Add(1)
			time.Sleep(time.Second)
			if !bytes.Equal(password, []byte("secret")) {
				return bcrypt.ErrMismatchedHashAndPassword
			}
			return nil
		})
		begin := time.Now()
		var wg sync.WaitGroup
		for range 64 {
			wg.Go(func() {
				if _, err := a.Authenticate(request("ann", "secret")); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if calls.Load() != slots || time.Since(begin) != time.Second {
			t.Errorf("%d checks in %v, want %d in 1s", calls.Load(), time.Since(begin), slots)
		}

		begin = time.Now()
		for range 6 {
			wg.Go(func() {
				if _, err := a.Authenticate(request("ann", "wrong")); !isUnauthenticated(err) {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		if _, err := a.Authenticate(request("ann", "secret")); err != nil || time.Since(begin) != 0 {
			t.Errorf("who is known had to wait %v behind those who are not: %v", time.Since(begin), err)
		}
		wg.Wait()
		if time.Since(begin) != 3*time.Second {
			t.Errorf("6 wrong ones took %v, want 3s: %d at a time", time.Since(begin), slots)
		}
	})
}

func TestWaitingForACheckEndsWithTheRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAuth(t, auth.Config{UsersFile: twoUsers(t)})
		a.SetSlots(1)
		hold := make(chan struct{})
		var calls atomic.Int64
		a.SetCompare(func(_, _ []byte) error {
			calls.Add(1)
			<-hold
			return nil
		})
		var wg sync.WaitGroup
		wg.Go(func() { _, _ = a.Authenticate(request("ann", "secret")) })
		synctest.Wait()

		gone := errors.New("gone")
		ctx, cancel := context.WithCancelCause(t.Context())
		wg.Go(func() {
			if u, err := a.Authenticate(request("bob", "hunter").WithContext(ctx)); !errors.Is(err, gone) || isUnauthenticated(err) || u.Name != "" {
				t.Errorf("%+v, %v", u, err)
			}
		})
		synctest.Wait()
		cancel(gone)
		synctest.Wait()
		close(hold)
		wg.Wait()

		// With a slot free, too, nothing is checked for somebody who has gone.
		if _, err := a.Authenticate(request("bob", "hunter").WithContext(ctx)); !errors.Is(err, gone) {
			t.Error(err)
		}
		if calls.Load() != 1 {
			t.Errorf("%d checks, want ann's only", calls.Load())
		}
		if _, err := a.Authenticate(request("bob", "hunter")); err != nil {
			t.Errorf("the slot is not free again: %v", err)
		}
	})
}

func TestConcurrentUse(t *testing.T) {
	a := newAuth(t, auth.Config{UsersFile: twoUsers(t)})
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 20 {
				name, password, ok := "ann", "secret", true
				if (i+j)%3 == 0 {
					name, password = "bob", "hunter"
				}
				if j%7 == 0 {
					password, ok = "wrong", false
				}
				u, err := a.Authenticate(request(name, password))
				if (err == nil) != ok || ok && u.Name != name {
					t.Errorf("%s with %s: %+v, %v", name, password, u, err)
				}
			}
		})
	}
	wg.Wait()
}

func TestHashPassword(t *testing.T) {
	h, err := auth.HashPassword("secret")
	if err != nil {
		t.Fatal(err)
	}
	if cost, err := bcrypt.Cost([]byte(h)); err != nil || cost != 12 {
		t.Errorf("cost %d, %v", cost, err)
	}
	if err := bcrypt.CompareHashAndPassword([]byte(h), []byte("secret")); err != nil {
		t.Error(err)
	}
	if _, err := auth.ParseUsers([]byte("ann: {hash: '" + h + "'}")); err != nil {
		t.Error(err)
	}
	for _, bad := range []string{"", strings.Repeat("x", 73)} {
		if h, err := auth.HashPassword(bad); err == nil {
			t.Errorf("a password of %d bytes got %s", len(bad), h)
		}
	}
}

// What every request of a known user pays.
func BenchmarkAuthenticate(b *testing.B) {
	a := newAuth(b, auth.Config{UsersFile: twoUsers(b)})
	r := request("ann", "secret")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := a.Authenticate(r); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAuthenticateParallel(b *testing.B) {
	a := newAuth(b, auth.Config{UsersFile: twoUsers(b)})
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		r := request("ann", "secret")
		for pb.Next() {
			if _, err := a.Authenticate(r); err != nil {
				b.Error(err)
				return
			}
		}
	})
}
